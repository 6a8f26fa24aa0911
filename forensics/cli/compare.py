"""Two runs, step by step: where they part, which setting differs, and what happened to both at the same step.

A spike at the same step in runs that share a data order is the batch; a spike in only one of them is not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.cli.options import metrics, output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics compare``."""
    parser.add_argument("a", type=Path, metavar="RUN_A", help="a run directory or log file")
    parser.add_argument("b", type=Path, metavar="RUN_B", help="the run it is compared with")
    parser.add_argument("--metric", action="append", default=[], metavar="ROLE=NAME", help="read NAME as ROLE in both runs; repeatable")
    parser.add_argument("--json", metavar="OUT", help="write the comparison as JSON; - for standard output")
    parser.add_argument("--quiet", action="store_true", help="nothing on the terminal")


def execute(args: argparse.Namespace) -> int:
    """Analyse both runs, compare them, and write what was asked for."""
    from forensics.comparison import compare
    from forensics.loading import load
    from forensics.pipeline import build_case
    from forensics.reports import comparison

    roles = metrics(args.metric)
    runs = [load(path, metrics=roles) for path in (args.a, args.b)]
    cases = [build_case(run) for run in runs]
    found = compare(runs[0], cases[0], runs[1], cases[1])
    if args.json:
        with output(args.json) as stream:
            comparison.render_json(found, stream)
    if not args.quiet and args.json != "-":
        comparison.render(found, sys.stdout)
    return 3 if any(case.damage for case in cases) else 0
