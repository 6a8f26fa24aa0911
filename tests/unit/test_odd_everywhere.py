"""Whole cases, comparisons, sweeps and advice of runs in which everything is odd: nothing raises, and JSON stays strict."""

from __future__ import annotations

import io
import json
from itertools import combinations

import numpy as np
import pytest

from forensics.advice.checkpoints import go_back_to
from forensics.advice.logging import logging_advice
from forensics.advice.skip import FORMATS, batches_to_skip
from forensics.comparison import compare
from forensics.fleet.common import summarise
from forensics.fleet.sweep import _row
from forensics.model import FloatArray, Run, Severity, Signal, SourceInfo, Span
from forensics.pipeline import build_case
from forensics.reports import comparison, fleet, json_report, markdown, terminal
from forensics.vocabulary import assign_roles

NAMES = ("loss", "val_loss", "lr", "grad_norm", "clip_value", "loss_scale", "batch_id", "shard_id", "node", "epoch", "loss_rank0", "loss_rank1", "loss_rank2")

SHAPES = ("constant", "zero", "negative", "wild", "huge", "mostly_nan", "short", "one", "inf", "integers")

CONFIG: dict[str, object] = {
    "lr": "nan",
    "learning_rate": float("inf"),
    "warmup_steps": -3,
    "max_steps": 1e308,
    "min_lr": True,
    "eval_steps": float("nan"),
    "save_steps": [1, 2],
    "dataset_size": 0,
    "max_grad_norm": "none",
    "fp16": True,
    "\x1b[2J": "\u202e",
}


def odd(shape: str) -> Run:
    points = {"short": 12, "one": 1}.get(shape, 300)
    rng = np.random.default_rng(0)
    steps = np.arange(points, dtype=np.int64)
    signals = []
    for name in NAMES:
        values: FloatArray = rng.normal(size=points)
        if shape in {"constant", "zero"}:
            values = np.full(points, 3.0 if shape == "constant" else 0.0)
        elif shape == "negative":
            values = -1 - np.abs(values)
        elif shape == "huge":
            values = np.exp(np.clip(200 * values, -600, 600))
        elif shape == "mostly_nan":
            values = np.where(rng.random(points) < 0.05, values, np.nan)
        elif shape == "inf":
            values = np.where(rng.random(points) < 0.3, np.inf, np.abs(values))
        elif shape == "integers":
            values = np.round(10 * np.abs(values))
        signals.append(Signal(name, steps, values, wall_times=1e9 + steps.astype(np.float64), spans=(Span(0, 0, points),)))
    return Run("run", "run", (SourceInfo("log.csv", "csv", points),), assign_roles(signals), (), CONFIG)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("error")
def test_cases_and_advice(shape: str) -> None:
    case = build_case(odd(shape))
    assert not [n for n in case.not_checked if n.why.startswith("failed")]
    for render in (json_report.render, markdown.render, terminal.render):
        render(case, io.StringIO())
    skips = batches_to_skip(case)
    for write in FORMATS.values():
        write(skips)
    logging_advice(case)
    for event in case.events:
        back = go_back_to(case, event)
        assert back is None or (back.step >= 0 and event.severity is not Severity.INFO)


@pytest.mark.parametrize(("one", "two"), [*combinations(SHAPES[:6], 2), ("inf", "integers"), ("short", "wild"), ("one", "one")])
@pytest.mark.filterwarnings("error")
def test_comparisons(one: str, two: str) -> None:
    a, b = odd(one), odd(two)
    found = compare(a, build_case(a), b, build_case(b))
    out = io.StringIO()
    comparison.render(found, out)
    comparison.render_json(found, out)
    assert "\x1b" not in out.getvalue()


@pytest.mark.filterwarnings("error")
def test_a_sweep() -> None:
    rows = [_row(run, build_case(run)) for run in map(odd, SHAPES)]
    found = summarise("runs", rows)
    out = io.StringIO()
    fleet.common(found, out)
    for row in rows:
        out.write(fleet.row(row))
    fleet.render_json(found, io.StringIO())
    assert "\x1b" not in out.getvalue()
    written = io.StringIO()
    fleet.render_json(found, written)
    assert json.loads(written.getvalue())["schema"] == "forensics-sweep/1"
