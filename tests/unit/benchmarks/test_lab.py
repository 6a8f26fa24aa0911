"""The lab of trained runs: a broken run is told from a healthy one, labels can be read, the same seed gives the same run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the lab trains with PyTorch")

from forensics.bench import parse_labels
from forensics.loading import load
from tests.benchmarks.lab.faults import BY_KIND, SPECS, Fault
from tests.benchmarks.lab.labelled import make_run, plan
from tests.benchmarks.lab.recipes import MIXES, WRITERS, Recipe, draw
from tests.benchmarks.lab.schedules import factor
from tests.benchmarks.lab.train import Log, train
from tests.benchmarks.lab.visible import broke, visible
from tests.benchmarks.lab.writers import logged, write
from tests.test_catalogue import CATALOGUE

SMALL = {
    "tasks": ("regression",),
    "steps": 160,
    "every": 1,
    "batch": 16,
    "optimizer": "adam",
    "lr": 1e-3,
    "schedule": "constant",
    "precision": "fp32",
    "accumulate": 1,
    "samples": 0,
    "batch_ramp": (0, 0),
    "warmup": 0,
}


def small(**more: object) -> Recipe:
    return draw(1, 1, "tune", {**SMALL, **more})


def fault(kind: str, **more: object) -> Fault:
    return replace(Fault(BY_KIND[kind], 100, 1, 1.0, "scale", False, 7), **more)


def test_a_loss_that_is_no_number_broke_the_run() -> None:
    rows = [{"step": s, "loss": 2.0 if s < 20 else math.nan} for s in range(40)]
    assert broke(Log(rows)) == 20


def test_noise_and_a_slow_rise_of_a_fraction_are_no_break() -> None:
    random = np.random.default_rng(0)
    assert broke(Log([{"step": s, "loss": 3 - s / 100 + random.normal(0, 0.1)} for s in range(200)])) is None


def test_a_fault_without_a_trace_is_not_visible() -> None:
    recipe = small()
    nothing = fault("weight_noise", x=0.0)
    log, twin = train(recipe, nothing), train(recipe)
    assert visible(log, twin, nothing, recipe, logged(recipe, log)) == []


def test_a_bad_batch_is_visible_and_nothing_differs_before_it() -> None:
    recipe = small()
    bad = fault("bad_batch")
    log, twin = train(recipe, bad), train(recipe)
    assert visible(log, twin, bad, recipe, logged(recipe, log))
    assert np.array_equal(log.column("loss")[1][:100], twin.column("loss")[1][:100])


@pytest.mark.parametrize("writer", sorted({w for several in WRITERS.values() for w in several}))
def test_every_writer_is_read_back(writer: str, tmp_path: Path) -> None:
    recipe = small(style="hf" if writer == "hf" else "plain", writer=writer, steps=60)
    log = train(recipe)
    write(tmp_path / "run", recipe, log)
    loss = load(tmp_path / "run").signal("loss")
    assert loss.values.tolist() == pytest.approx(log.column("loss")[1].tolist(), rel=1e-6)


def test_labels_can_be_read_and_name_causes_of_the_catalogue(tmp_path: Path) -> None:
    label = make_run(tmp_path, 3, "tune", 0, "lr_zero")
    (read,) = parse_labels(json.loads(json.dumps([label])), "labels")
    assert read.visible
    assert (tmp_path / read.run).is_dir()
    assert {cause for spec in SPECS for cause in spec.accept} <= {cause for ids in CATALOGUE.values() for cause in ids.split()}


@pytest.mark.parametrize("mix", sorted(MIXES))
def test_three_of_five_runs_are_healthy_and_every_fault_occurs(mix: str) -> None:
    kinds = plan(200, 1)
    assert kinds.count(None) == 120
    assert {kind for kind in kinds if kind} == set(BY_KIND)
    assert draw(5, 9, mix) == draw(5, 9, mix)


@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear", "step", "one-cycle", "wsd", "restarts", "inverse-sqrt"])
def test_schedules_stay_between_nothing_and_the_peak(schedule: str) -> None:
    rates = [factor(small(schedule=schedule, steps=500), step) for step in range(500)]
    assert min(rates) >= 0
    assert max(rates) == pytest.approx(1.0, abs=0.01)
