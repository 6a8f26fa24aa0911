"""Render a case.json again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.cli.options import output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics report``."""
    parser.add_argument("case", type=Path, help="a case.json that forensics analyze wrote")
    parser.add_argument("--html", metavar="OUT", help="write the report as one HTML file; - for standard output")
    parser.add_argument("--md", metavar="OUT", help="write the report as Markdown")
    parser.add_argument("--json", metavar="OUT", help="write the case again, in canonical form")


def execute(args: argparse.Namespace) -> int:
    """Load the case and render it; to the terminal where nothing else is asked for."""
    from forensics.reports import html, json_report, markdown, terminal

    case = json_report.load(args.case)
    wanted = ((args.html, html.render), (args.md, markdown.render), (args.json, json_report.render))
    for target, render in wanted:
        if target:
            with output(target) as stream:
                render(case, stream)
    if not any(target for target, _ in wanted):
        terminal.render(case, sys.stdout)
    return 0
