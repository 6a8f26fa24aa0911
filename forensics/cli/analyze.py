"""Analyse a run: what happened, at which step, and why.

Prints the verdict and writes report.html and case.json into the current directory's
forensics-report folder, unless outputs are named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.cli.options import add_run_arguments, ask_which, exit_code, metrics, output, reading
from forensics.errors import SeveralRunsError

DEFAULT_FOLDER = "forensics-report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics analyze``."""
    add_run_arguments(parser)
    parser.add_argument("--json", metavar="OUT", help="write the case as JSON; - for standard output")
    parser.add_argument("--html", metavar="OUT", help="write the report as one HTML file")
    parser.add_argument("--md", metavar="OUT", help="write the report as Markdown")
    text = "read of the checkpoints beside the logs: every number (all), numbers near the events up to 2 GiB (auto, the default), or nothing (none)"
    parser.add_argument("--checkpoints", choices=["auto", "all", "none"], default="auto", help=text)
    parser.add_argument("--fail-on", choices=["warning", "critical"], help="exit with 1 if an event is at least this severe (default: never)")


def execute(args: argparse.Namespace) -> int:
    """Run the analysis and write what was asked for."""
    from forensics.pipeline import analyze
    from forensics.reports import html, json_report, markdown, terminal

    roles = metrics(args.metric)
    try:
        with reading(args.path, args.quiet) as progress:
            case = analyze(args.path, metrics=roles, choose=args.run, progress=progress, checkpoints=args.checkpoints)
    except SeveralRunsError as several:
        case = analyze(args.path, metrics=roles, choose=ask_which(several), checkpoints=args.checkpoints)
    named = {"json": args.json, "html": args.html, "md": args.md}
    if not any(named.values()) and not args.quiet:
        folder = Path(DEFAULT_FOLDER)
        folder.mkdir(exist_ok=True)
        named |= {"html": str(folder / "report.html"), "json": str(folder / "case.json")}
    renderers = {"json": json_report.render, "html": html.render, "md": markdown.render}
    for kind, target in named.items():
        if target:
            with output(target) as stream:
                renderers[kind](case, stream)
    if not args.quiet and "-" not in named.values():
        terminal.render(case, sys.stdout)
        written = [t for t in named.values() if t]
        if written:
            sys.stdout.write("\nwritten: " + ", ".join(written) + "\n")
        if named["json"] and any(e.severity.value != "info" for e in case.events):
            sys.stdout.write(f"what to do now, with code: forensics advise {named['json']}\n")
    return exit_code(case, args.fail_on)
