"""A labelled set: which runs are made, what was done to each, and what its label says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.benchmarks.lab.faults import BY_KIND, SPECS, Fault, Spec, make_fault
from tests.benchmarks.lab.recipes import Recipe, draw
from tests.benchmarks.lab.train import Log, train
from tests.benchmarks.lab.visible import broke, from_the_start, overfitted, twin_of, visible
from tests.benchmarks.lab.writers import logged, write

HEALTHY = 0.6
"""Share of healthy runs."""

TOO_HIGH = (8.0, 30.0, 100.0)
"""Factors of the learning rate of runs where it is too high: the first one that breaks the run is kept."""


LATE = 10
"""Steps after a run that was set up wrongly has visibly broken in which an alarm still marks its beginning."""

OVERFIT = 0.03
"""Relative rise of the held-out loss over its minimum from which a run does overfit, meant or not."""

ATTEMPTS = 2
"""A fault that left no trace is put into one more run; if it leaves none there either, it stands as not visible."""


def plan(runs: int, seed: int) -> list[str | None]:
    """What is wrong with each run: the kinds of faults in turn, healthy runs between them."""
    random = np.random.default_rng([seed, 999])
    faults = round(runs * (1 - HEALTHY))
    kinds = [SPECS[i % len(SPECS)].kind for i in (random.permutation(len(SPECS)).tolist() * (faults // len(SPECS) + 1))[:faults]]
    made: list[str | None] = [*kinds, *[None] * (runs - faults)]
    return [made[i] for i in random.permutation(runs)]


def make_run(out: Path, seed: int, mix: str, number: int, kind: str | None) -> dict[str, object]:
    """Train and write one run; its label."""
    random = np.random.default_rng([seed, number, 1])
    spec = BY_KIND[kind] if kind else None
    name = f"{mix}-{number:03d}"
    if spec is None:
        recipe = draw(seed, number, mix)
        log = _without_overfitting(train(recipe))
        return {
            **_label(name, out, recipe, log),
            "event": "none",
            "injected": None,
            "accept": [],
            "onset": [None, None],
            "visible": [],
            "fault": {},
            "broke": broke(log),
        }
    for attempt in range(ATTEMPTS):
        recipe = draw(seed, number + 1_000_000 * attempt, mix, spec.needs)
        recipe, fault, log, twin = _faulty(recipe, spec, random)
        shown, window, also = _truth(recipe, fault, log, twin)
        log = log if spec.kind == "overfitting" else _without_overfitting(log)
        if shown:
            break
    made = {"kind": fault.kind, "step": fault.step, "n": fault.n, "x": fault.x, "mode": fault.mode}
    return {
        **_label(name, out, recipe, log),
        "event": spec.event,
        "injected": spec.injected,
        "accept": list(spec.accept),
        "onset": list(window),
        "visible": shown,
        "also": also,
        "fault": made,
    }


def _faulty(recipe: Recipe, spec: Spec, random: np.random.Generator) -> tuple[Recipe, Fault, Log, Log]:
    fault = make_fault(spec, recipe, random)
    if spec.kind == "overfitting":
        recipe = replace(recipe, validate=max(10, recipe.steps // 30))
    if spec.twin is None or spec.kind == "overfitting":
        return recipe, fault, train(recipe, fault), twin_of(recipe, fault)
    usual, wanted = recipe, None
    for factor in TOO_HIGH if spec.kind == "lr_too_high" else (4.0, 10.0, 30.0):
        recipe = replace(usual, lr=usual.lr * factor, fault_size=factor)
        log = train(recipe, fault)
        wanted = wanted or (recipe, log)
        if broke(log) is not None:
            wanted = recipe, log
            break
    return wanted[0], fault, wanted[1], twin_of(wanted[0], fault)


def _truth(r: Recipe, fault: Fault, log: Log, twin: Log) -> tuple[list[str], tuple[int, int], list[tuple[int, int]]]:
    """What shows the fault, the window of its onset, and further windows."""
    if fault.kind == "overfitting":
        shown, window = overfitted(log, twin)
        return shown, window, []
    if fault.spec.twin is not None:
        shown, until = from_the_start(log, twin)
        return shown, (0, until + LATE), []
    shown = visible(log, twin, fault, r, logged(r, log))
    if fault.kind == "recurring_batch":
        per_epoch = r.samples // r.batch
        steps = [s for s in range(fault.step, r.steps) if s % per_epoch == fault.n]
        seen = [s for s in steps if visible(log, twin, replace(fault, step=s), r, logged(r, log))]
        first = seen[0] if seen else fault.step
        return (["loss"] if seen else []), (first, first + 3), [(s, s + 3) for s in steps if s != first]
    if fault.kind == "log_rewound":
        return shown, (fault.step - fault.n, fault.step), []
    if fault.kind == "data_pocket":
        return shown, (fault.step, fault.step + 10), [(fault.step + fault.n, fault.step + fault.n + 10)]
    return shown, (fault.step, fault.step + fault.spec.reach), []


def _without_overfitting(log: Log) -> Log:
    """The log without its held-out loss where that rises: such a run is not healthy, and nothing else was done to it."""
    _, values = log.column("val_loss")
    if len(values) >= 4 and np.median(values[-3:]) > (1 + OVERFIT) * np.nanmin(values):
        for row in log.rows:
            row.pop("val_loss", None)
        log.rows = [row for row in log.rows if "loss" in row]
    return log


def _label(name: str, out: Path, recipe: Recipe, log: Log) -> dict[str, object]:
    source, signals = write(out / "runs" / name, recipe, log)
    trained = {k: getattr(recipe, k) for k in ("task", "model", "optimizer", "lr", "steps", "schedule", "precision", "style")}
    return {"id": name, "run": f"runs/{name}", "source": source, "every": recipe.every, "signals": signals, "trained": trained}
