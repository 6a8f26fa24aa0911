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
    from collections.abc import Sequence

    from forensics.bench import Calibration, Figures, Label, Row

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
        sys.stdout.write("\n" + _by_fault(labels, rows) + "\n" + _calibration(bench.calibration(rows)) + "\n" + _beside(labels, rows, figures) + "\n")
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


def _by_fault(labels: Sequence[Label], rows: Sequence[Row]) -> str:
    """What was found of every fault that is visible, worst first."""
    groups: dict[str, list[Row]] = {}
    for label, row in zip(labels, rows, strict=True):
        if row.found is not None:
            groups.setdefault(label.injected or label.event, []).append(row)
    if not groups:
        return "no visible fault in this set\n"
    counts = [
        (name, len(own), sum(map(bool, (r.found for r in own))), sum(bool(r.top1) for r in own), sum(bool(r.top3) for r in own)) for name, own in groups.items()
    ]
    lines = [f"{'fault':34} {'runs':>5} {'found':>5} {'top1':>5} {'top3':>5}"]
    lines += [
        f"{name[:34]:34} {runs:>5} {found:>5} {first:>5} {three:>5}" for name, runs, found, first, three in sorted(counts, key=lambda c: (c[3] / c[1], c[0]))
    ]
    return "\n".join(lines) + "\n"


def _calibration(found: Calibration) -> str:
    """Do scores mean what they say? One line per bin."""
    if found.brier is None:
        return "no fault was found: nothing to say about scores\n"
    lines = [f"{'score of first cause':22} {'runs':>5} {'mean':>6} {'right':>6}"]
    lines += [f"{f'{b.low:.1f} to {b.high:.1f}':22} {b.count:>5} {b.mean_score:>6.2f} {b.right:>6.2f}" for b in found.bins]
    return "\n".join([*lines, f"Brier score {found.brier:.3f}"]) + "\n"


def _beside(labels: Sequence[Label], rows: Sequence[Row], own: Figures) -> str:
    """Our figures over those of simple rules on the same runs; the rules name no causes."""
    from forensics import bench
    from forensics.simple_rules import RULES

    lines = [f"{'rule':26} {'recall':>7} {'onset<=2':>9} {'clean alarmed':>14} {'false alarms':>13}", _rule_line("forensics", own)]
    for n, (name, _) in enumerate(RULES):
        judged = [row.beside[n] if n < len(row.beside) else row for row in rows]
        lines.append(_rule_line(name, bench.figures(labels, judged)))
    return "\n".join(lines) + "\n"


def _rule_line(name: str, figures: Figures) -> str:
    clean = f"{figures.clean_runs_with_alarm} of {figures.clean_runs}"
    return f"{name:26} {figures.recall:>7.3f} {figures.onset_within_2:>9.3f} {clean:>14} {figures.false_alarms:>13}"


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
