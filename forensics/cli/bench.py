"""Score the tool on labelled runs: what it finds, at which step, what it blames, and its false alarms.

LABELS.json is a list of runs with what was done to them; run paths in it are relative to its folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.cli.options import output

if TYPE_CHECKING:
    from forensics.bench import Figures, Label, Row

_MARK = {True: "yes", False: "no", None: ""}

_HEAD = f"{'run':34} {'found':>5} {'error':>5} {'top1':>4} {'top3':>4} {'false':>5}  truth -> said"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``forensics bench``."""
    parser.add_argument("labels", type=Path, metavar="LABELS.json", help="labelled runs")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--sample", type=_positive, metavar="N", help="about this many runs, evenly spread (default: all)")
    parser.add_argument("--json", metavar="OUT", help="write figures and rows as JSON; - for standard output")


def execute(args: argparse.Namespace) -> int:
    """Judge every run, a line each, then one line of figures."""
    from forensics import bench

    labels = bench.sample(bench.read_labels(args.labels), args.sample)
    shown = args.json != "-"
    if shown:
        sys.stdout.write(_HEAD + "\n")
    rows: list[Row] = []
    for label, row in zip(labels, bench.judge_all(labels, args.labels.parent, args.jobs), strict=True):
        rows.append(row)
        if shown:
            sys.stdout.write(_line(label, row) + "\n")
            sys.stdout.flush()
    figures = bench.figures(labels, rows)
    if shown:
        sys.stdout.write(_summary(figures) + "\n")
    if args.json:
        _write(args.json, figures, rows)
    return 0


def _line(label: Label, row: Row) -> str:
    error = "" if row.error is None else f"{row.error:g}"
    truth = "clean" if label.clean else f"{label.injected or label.event}{'' if label.visible else ' (not visible)'}"
    said = ", ".join(row.said) or "nothing"
    return f"{row.id:34} {_MARK[row.found]:>5} {error:>5} {_MARK[row.top1]:>4} {_MARK[row.top3]:>4} {row.false or '':>5}  {truth} -> {said}"


def _summary(figures: Figures) -> str:
    values = ((item.name, getattr(figures, item.name)) for item in fields(figures))
    return " ".join(f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}" for name, value in values)


def _write(target: str, figures: Figures, rows: list[Row]) -> None:
    from forensics.bench import SCHEMA
    from forensics.model import to_json

    with output(target) as stream:
        json.dump({"schema": SCHEMA, "figures": to_json(figures), "rows": to_json(rows)}, stream, indent=1, allow_nan=False)
        stream.write("\n")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 1 on")
    return value
