"""Analyse a small real broken run that comes with the tool.

Prints the verdict and writes report.html and case.json into the folder forensics-report.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from forensics.cli import analyze

RUN = Path(__file__).parents[1] / "demo_run"
"""Package data: the run is part of the wheel, so that the demonstration needs no network and no checkout."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``forensics demo`` takes no options."""
    del parser


def execute(args: argparse.Namespace) -> int:
    """Do what ``forensics analyze RUN`` does."""
    del args
    parser = argparse.ArgumentParser()
    analyze.add_arguments(parser)
    code = analyze.execute(parser.parse_args([str(RUN)]))
    sys.stdout.write(f"open {Path(analyze.DEFAULT_FOLDER) / 'report.html'} in a browser; for a run of yours: forensics analyze PATH\n")
    return code
