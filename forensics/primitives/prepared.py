"""A signal made ready for detection: finite points, the right scale, a local baseline and a local noise level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import Curve, FloatArray, IntArray, Signal
from forensics.primitives.robust import centred_median, local_sd, pieces, slow_median, stretches
from forensics.primitives.units import unscale
from forensics.vocabulary import POSITIVE, Role

BASELINE_POINTS = 51
"""Points of the centred median: wide enough to ignore a spike of 25 points, narrow enough to follow a falling loss."""

SHORT_BASELINE = 11
"""... and at least this wide on curves of less than four times that, which have fallen far within it."""

NOISE_POINTS = 201
"""Points of the local noise level."""

LOG_FLOOR = 1e-3
"""Noise below a tenth of a percent is rounding, in log units (also the floor of the published robust z)."""

SMOOTH = 3.0
"""Ratio of the noise around the baseline to that between neighbours that an ordinary curve does not exceed."""

NEIGHBOURS = 384
"""Points beside a piece of a long curve that the noise at its ends is measured from."""

STEP_POINTS = 61
"""Points of the noise from differences."""

MAYBE_LOG = frozenset({Role.LOSS, Role.VAL_LOSS, Role.LOSS_BY_SOURCE, Role.ATTN_LOGIT_MAX, Role.GRAD_NORM_GROUP})
"""Compared as logarithms where all values are positive, as they are otherwise (log-likelihoods, centred losses)."""


SHIFTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Shifts that are tried, as shares of the loss at the start."""

SHIFT_POINTS = 100
"""Fewer points do not show the shape of the noise."""

SKEWED = 0.15
"""Quantile skewness below minus this is a noise that is longer downwards."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One curve of one signal. All arrays have shape (points,) over the finite points, ascending in step.

    ``u`` is the value on the comparison scale (natural log of value + ``shift`` where ``log``); ``noise`` the local standard deviation of ``u``;
    ``bad`` the steps whose value was not finite; ``every`` the median distance between logged steps. ``unscaled``: the values are
    the logged ones divided by the loss scale, which they carried.
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
    shift: float = 0.0
    unscaled: bool = False

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, step: int) -> int:
        """Position of the first point at or after a step (may be len)."""
        return int(np.searchsorted(self.steps, step))

    def original(self, u: float) -> float:
        """A value of the comparison scale in the signal's own unit."""
        return float(np.exp(min(u, 700.0))) - self.shift if self.log else float(u)


def prepare(signal: Signal, attempts: int | None = None, scale: Signal | None = None) -> Prepared:
    """Prepare the curve of a signal as it stood after ``attempts`` attempts (all by default).

    ``scale`` is the run's loss scale, by which a gradient norm is divided where it carries it.
    """
    curve: Curve = signal.curve(attempts)
    repaired = unscale(curve, scale, attempts) if scale is not None else None
    if repaired is not None:
        fresh = ~repaired.stale
        curve = Curve(curve.steps[fresh], repaired.values[fresh], curve.index[fresh])
    finite = np.isfinite(curve.values)
    log = _on_log_scale(signal.role, curve.values[finite])
    usable = finite & (curve.values > 0) if log else finite
    kept = curve if usable.all() else Curve(curve.steps[usable], curve.values[usable], curve.index[usable])
    steps, values = kept.steps, kept.values
    shift = _shift(values) if log and signal.role in MAYBE_LOG else 0.0
    u = np.log(values + shift if shift else values) if log else values.copy()
    centre, noise = np.empty(len(u)), np.empty(len(u))
    floor = _floor(u, log)
    for piece in pieces(len(u), NEIGHBOURS, NEIGHBOURS):
        part = u[piece.around]
        middle = slow_median(part, min(BASELINE_POINTS, max(SHORT_BASELINE, len(part) // 4 | 1)))
        centre[piece.low : piece.high] = middle[piece.inner]
        noise[piece.low : piece.high] = np.maximum(_noise(part, middle)[piece.inner], floor)
    every = float(np.median(np.diff(curve.steps))) if len(curve) > 1 else 1.0  # a curve's steps are distinct and ascending
    return Prepared(
        name=signal.name,
        role=signal.role,
        signal=signal,
        steps=steps,
        values=values,
        index=kept.index,
        u=u,
        centre=centre,
        noise=noise,
        log=log,
        bad=curve.steps[~finite],
        every=every,
        shift=shift,
        unscaled=repaired is not None,
    )


def _noise(u: FloatArray, centre: FloatArray) -> FloatArray:
    """Local noise around the baseline. On a short curve one event fills the window; there, smoothness between neighbours bounds it."""
    around, steps = local_sd(u - centre, NOISE_POINTS), _step_noise(u)
    if len(u) < NOISE_POINTS:
        around = np.minimum(around, SMOOTH * steps)
    return np.maximum(around, steps)


def _step_noise(u: FloatArray) -> FloatArray:
    """Noise from differences of neighbours in a shorter window: follows noise that grows quickly, ignores levels and slow bumps."""
    if len(u) < 3:
        return np.zeros(len(u))
    steps = np.diff(u, prepend=u[0])
    return np.asarray(local_sd(steps - slow_median(steps, STEP_POINTS), STEP_POINTS) / np.sqrt(2.0))


def _shift(values: FloatArray) -> float:
    """What to add before the logarithm so that the noise is symmetric: nothing for most losses.

    A loss near zero is noisy downwards on a log scale, and its spikes drown in that; the smallest shift that ends it is taken.
    """
    if len(values) < SHIFT_POINTS:
        return 0.0
    start = float(np.median(values[:5]))
    sample = stretches(values)
    for share in SHIFTS:
        u = np.log(sample + share * start)
        low, middle, high = np.quantile(u - centred_median(u, BASELINE_POINTS), [0.05, 0.5, 0.95])
        if high <= low or (high + low - 2 * middle) / (high - low) >= -SKEWED:
            return share * start
    return SHIFTS[-1] * start


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
