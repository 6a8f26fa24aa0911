"""Is a fault visible at all? The faulty run held against its twin without the fault: same seed, same data, same noise.

Both runs are the same up to the fault, so every later difference is its effect. An effect is visible where it leaves the noise
of the run itself, as somebody would see it who has only the faulty run.
"""

from __future__ import annotations

import numpy as np

from tests.benchmarks.lab.faults import Fault
from tests.benchmarks.lab.recipes import Recipe
from tests.benchmarks.lab.train import Log, train

SHARP_SDS = 6.0
"""A point that differs by so many sds of the noise is seen by itself (catalogue: rz >= 6)."""

LEVEL_SDS = 2.0
"""Levels of 40 points that differ by so many sds of single points: some twelve standard errors."""

NOISE_FACTOR = 2.0
NORM_FACTOR = 3.0
"""Factor of the gradient norm below which it is the tail of healthy runs."""

SOON, LATER = 8, 60
"""Logged points after the onset for a sharp effect, and for a change of level."""

SCALE_STEPS = 40
"""Steps after the onset in which a loss scale must show it; later its own search makes it differ."""

WINDOW = 100
LEAST_GAIN = 0.2
"""Share of the first loss that counts as gained from the start: a stir in the first points breaks nothing."""

RISE_SHARE = 0.25
"""Share of what training had gained that a run which is bad from its start must lose again to count as visibly bad."""


def visible(faulty: Log, twin: Log, fault: Fault, recipe: Recipe, logged: tuple[str, ...]) -> list[str]:
    """Names of the signals that show the fault."""
    found = []
    for name in ("loss", "grad_norm", "loss_G"):
        if name in logged and len(faulty.column(name)[0]):
            found += _curve(name, faulty, twin, fault)
    for name, least in (("lr", 1.5), ("loss_scale", 4.0), ("batch_size", 1.5), ("attn_logit_max", 2.0)):
        reach = SCALE_STEPS if name == "loss_scale" else 10**9
        if name in logged and _differs(faulty.column(name), twin.column(name), fault.step, reach, least):
            found.append(name)
    if "batch_id" in logged and fault.kind == "data_repeat":
        found.append("batch_id")
    if fault.kind == "log_rewound":
        found.append("step")
    return found


def _pairs(faulty: Log, twin: Log, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    steps, values = faulty.column(name)
    others = dict(zip(*twin.column(name), strict=True))
    both = np.array([s in others for s in steps], dtype=bool)
    return steps[both], values[both], np.array([others[s] for s in steps[both]])


def _scaled(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values) if np.nanmin(values) > 0 else values


def _curve(name: str, faulty: Log, twin: Log, fault: Fault) -> list[str]:
    steps, values, others = _pairs(faulty, twin, name)
    at = int(np.searchsorted(steps, fault.step))
    if at < 10 or at >= len(steps):
        return []
    if name == "loss" and not np.isfinite(values[at:]).all() and np.isfinite(others[at:]).all():
        return [name]
    together = np.concatenate([values, others])
    if np.nanmin(together) > 0:
        values, others = np.log(values), np.log(others)
    before = others[max(0, at - WINDOW) : at]
    sd = 1.4826 * _noise(before) / np.sqrt(2) + 1e-9
    with np.errstate(invalid="ignore"):
        change = np.nan_to_num(values - others, nan=0.0, posinf=1e3, neginf=-1e3)[at:]
    least = max(SHARP_SDS * sd, np.log(NORM_FACTOR) if name == "grad_norm" else 0.0)
    fell = name == "loss" and float(np.median(change[:3])) <= -SHARP_SDS * sd
    out = [name] if fell or np.max(change[:SOON]) >= least else []
    blocks = [np.median(change[k : k + 40]) for k in range(0, min(len(change), LATER) - 19, 10)]
    if blocks and max(np.abs(blocks)) >= max(LEVEL_SDS * sd, np.log(1.5) if name == "grad_norm" else 0.0):
        out.append(f"{name} level")
    after, usual = values[at : at + WINDOW], others[at : at + WINDOW]
    if len(after) >= 20 and _noise(after) >= NOISE_FACTOR * max(_noise(before), _noise(usual)):
        out.append(f"{name} noise")
    return out


def _noise(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(np.abs(np.diff(values)))) if len(values) > 2 else 0.0


def _differs(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], step: int, reach: int, least: float) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        others = dict(zip(*other, strict=True))
        ratios = [v / others[s] for s, v in zip(*one, strict=True) if step <= s <= step + reach and s in others]
    return any(not np.isfinite(r) or r >= least or r <= 1 / least for r in ratios)


def broke(log: Log) -> int | None:
    """The step at which a run lost a good part of what it had gained, or its numbers; None if it never did."""
    steps, values = log.column("loss")
    bad = np.flatnonzero(~np.isfinite(values))
    limit = int(bad[0]) if len(bad) else len(values)
    smooth = np.array([np.median(values[max(0, i - 4) : i + 1]) for i in range(limit)])
    if limit >= 10:
        lowest = np.minimum.accumulate(smooth)
        sd = 1.4826 * float(np.median(np.abs(np.diff(values[:limit])))) / np.sqrt(2)
        gained = np.maximum(smooth[0] - lowest, LEAST_GAIN * abs(smooth[0]))
        lost = np.flatnonzero((smooth - lowest > RISE_SHARE * gained) & (smooth - lowest > SHARP_SDS * sd))
        if len(lost):
            return int(steps[lost[0]])
    return int(steps[limit]) if len(bad) else None


def from_the_start(faulty: Log, twin: Log) -> tuple[list[str], int]:
    """For a run that was set up wrongly: what shows it (it broke, its twin did not), and until when."""
    at, other = broke(faulty), broke(twin)
    return (["loss"], at) if at is not None and other is None else ([], int(faulty.column("loss")[0][-1]))


def overfitted(faulty: Log, twin: Log) -> tuple[list[str], tuple[int, int]]:
    """The held-out loss rose by a tenth over its minimum, and that of the twin did not; the window of its minimum."""
    steps, values = faulty.column("val_loss")
    _, others = twin.column("val_loss")
    if len(values) < 8:
        return [], (0, 0)
    best = int(np.argmin(values))
    rose = np.median(values[-3:]) > 1.1 * values[best] and np.median(others[-3:]) <= 1.05 * others.min()
    return (["val_loss"] if rose else []), (int(steps[max(0, best - 2)]), int(steps[min(len(steps) - 1, best + max(3, len(steps) // 4))]))


def twin_of(recipe: Recipe, fault: Fault) -> Log:
    """The run without the fault."""
    return train(fault.spec.twin(recipe) if fault.spec.twin else recipe)
