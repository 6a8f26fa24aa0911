"""A signal made ready for detection: finite points, the right scale, a local baseline and a local noise level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import Curve, FloatArray, IntArray, Signal
from forensics.primitives.robust import centred_median, local_sd
from forensics.vocabulary import POSITIVE, Role

BASELINE_POINTS = 51
"""Points of the centred median: wide enough to ignore a spike of 25 points, narrow enough to follow a falling loss."""

NOISE_POINTS = 201
"""Points of the local noise level."""

LOG_FLOOR = 1e-3
"""Noise below a tenth of a percent is rounding, in log units (also the floor of the published robust z)."""

MAYBE_LOG = frozenset({Role.LOSS, Role.VAL_LOSS, Role.LOSS_BY_SOURCE, Role.ATTN_LOGIT_MAX, Role.GRAD_NORM_GROUP})
"""Compared as logarithms where all values are positive, as they are otherwise (log-likelihoods, centred losses)."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One curve of one signal. All arrays have shape (points,) over the finite points, ascending in step.

    ``u`` is the value on the comparison scale (natural log where ``log``); ``noise`` the local standard deviation of ``u``;
    ``bad`` the steps whose value was not finite; ``every`` the median distance between logged steps.
    """

    name: str
    role: str | None
    signal: Signal
    steps: IntArray
    values: FloatArray
    index: IntArray
    u: FloatArray
    centre: FloatArray
    noise: FloatArray
    log: bool
    bad: IntArray
    every: float

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, step: int) -> int:
        """Position of the first point at or after a step (may be len)."""
        return int(np.searchsorted(self.steps, step))

    def original(self, u: float) -> float:
        """A value of the comparison scale in the signal's own unit."""
        return float(np.exp(min(u, 700.0))) if self.log else float(u)


def prepare(signal: Signal, attempts: int | None = None) -> Prepared:
    """Prepare the curve of a signal as it stood after ``attempts`` attempts (all by default)."""
    curve: Curve = signal.curve(attempts)
    finite = np.isfinite(curve.values)
    log = _on_log_scale(signal.role, curve.values[finite])
    usable = finite & (curve.values > 0) if log else finite
    steps, values = curve.steps[usable], curve.values[usable]
    u = np.log(values) if log else values.copy()
    centre = centred_median(u, BASELINE_POINTS)
    noise = np.maximum(local_sd(u - centre, NOISE_POINTS), _floor(u, log))
    every = float(np.median(np.diff(curve.steps))) if len(curve) > 1 else 1.0
    return Prepared(signal.name, signal.role, signal, steps, values, curve.index[usable], u, centre, noise, log, curve.steps[~finite], every)


def _on_log_scale(role: str | None, values: FloatArray) -> bool:
    if len(values) == 0:
        return False
    if role in POSITIVE:
        return bool((values > 0).any())
    return role in MAYBE_LOG and bool((values > 0).all())


def _floor(u: FloatArray, log: bool) -> float:
    """Smallest noise that is not rounding: a fixed share, or half the quantum of a coarsely printed signal."""
    if len(u) == 0:
        return LOG_FLOOR
    floor = LOG_FLOOR if log else LOG_FLOOR * max(float(np.median(np.abs(u))), 1e-12)
    sample = np.unique(u[:: max(1, len(u) // 5000)])
    if 1 < len(sample) < min(len(u), 5000) / 5:
        floor = max(floor, 0.5 * float(np.median(np.diff(sample))))
    return floor
