"""Analyse every run below a folder: one table, and what the runs that went wrong have in common.

Runs are analysed in local processes. Common are causes, batches and steps at which several runs broke
(with the chance of that), and settings that go with trouble (Fisher's exact test, corrected for their number).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from forensics.cli.options import output
from forensics.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics sweep``."""
    parser.add_argument("path", type=Path, metavar="DIR", help="a folder that holds runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--json", metavar="OUT", help="write table and summary as JSON; - for standard output")
    parser.add_argument("--cases", type=Path, metavar="DIR", help="write the case.json of every run into this folder")
    parser.add_argument("--quiet", action="store_true", help="nothing on the terminal")
    parser.add_argument("--fail-on", choices=["warning", "critical"], help="exit with 1 if an event of any run is at least this severe (default: never)")


def execute(args: argparse.Namespace) -> int:
    """A line per run as it becomes known, then what they have in common."""
    from forensics.fleet.common import summarise
    from forensics.fleet.sweep import analyse_all, find_runs
    from forensics.reports import fleet

    if args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: expected a number from 1 on")
    found = find_runs(args.path)
    if args.cases is not None:
        args.cases.mkdir(parents=True, exist_ok=True)
    shown = not args.quiet and args.json != "-"
    if shown:
        sys.stdout.write(fleet.head())
    rows = []
    for row in analyse_all(found, args.jobs, args.cases):
        rows.append(row)
        if shown:
            sys.stdout.write(fleet.row(row))
            sys.stdout.flush()
    summary = summarise(str(args.path), rows)
    if shown:
        fleet.common(summary, sys.stdout)
    if args.json:
        with output(args.json) as stream:
            fleet.render_json(summary, stream)
    severities = {e.severity for r in rows for e in r.events}
    if args.fail_on is not None and severities & ({"critical"} if args.fail_on == "critical" else {"warning", "critical"}):
        return 1
    return 3 if any(r.problem or r.damage for r in rows) else 0
