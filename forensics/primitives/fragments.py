"""Rises within a handful of points: excerpts of logs, quoted lines, runs that broke at once.

There is no noise to compare with, so only what nobody would take for noise counts: a jump far beyond all steps before it, or a
climb of several points in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from forensics.model import FloatArray, IntArray
from forensics.primitives.rises import Rise
from forensics.primitives.tails import Tail

MOST = 12
"""Points up to which a stretch is a fragment."""

GAP = 20.0
"""A distance between steps that is this many times the usual one of the stretch separates stretches."""

JUMP = 0.6
"""Height of a jump over everything before it in the stretch, in log units (a factor of 1.8)."""

LEAST_SD = 0.05
"""Noise that is assumed at least, in log units."""

CHANCE = 0.01
"""Accepted chance that noise of the size of the steps before does this."""

CLIMB, CLIMB_STEPS = 0.4, 4
"""Height of a climb, in log units, and rises in a row."""


def fragment_rises(steps: IntArray, u: FloatArray) -> list[Rise]:
    """Rises within the short stretches of a curve on a log scale, shapes (points,)."""
    found = []
    for low, high in _stretches(steps):
        if 3 <= high - low <= MOST:
            rise = _jump(u[low:high]) or _climb(u[low:high])
            if rise is not None:
                found.append(_moved(rise, low))
    return found


def _stretches(steps: IntArray) -> Iterator[tuple[int, int]]:
    """Where stretches begin and end: at gaps much longer than the distances on both sides of them."""
    if len(steps) < 3:
        return
    apart = np.diff(steps).astype(np.float64)
    near = [float(np.median(apart[max(0, i - 5) : i + 6])) for i in np.flatnonzero(apart >= GAP * apart.min()).tolist()]
    wide = np.flatnonzero(apart >= GAP * apart.min())
    cuts = [int(i) + 1 for i, usual in zip(wide, near, strict=True) if apart[i] >= GAP * usual]
    yield from pairwise([0, *cuts, len(steps)])


def _jump(u: FloatArray) -> Rise | None:
    for i in range(2, len(u)):
        before = u[:i]
        height = float(u[i] - before.max())
        if height < JUMP:
            continue
        spread = max(LEAST_SD, float(np.sqrt(np.mean(np.diff(before) ** 2))))
        p_value = Tail(np.empty(0), 0.0).p_value(height / spread, len(u) * 2.0 / (i - 1))
        if p_value <= CHANCE:
            return _rise(u, i, float(np.median(before)), height / spread, p_value)
    return None


def _climb(u: FloatArray) -> Rise | None:
    """Points that rise to the end, each above the one before, from the first or from the lowest on."""
    low = int(np.argmin(u))
    part = u[low:]
    if len(part) <= CLIMB_STEPS or float(part[-1] - part[0]) < CLIMB or (np.diff(part) <= 0).any():
        return None
    p_value = float(1.0 / np.prod(np.arange(1.0, len(part) + 1.0)))
    return Rise(low + 1, len(u) - 1, None, float(part[0]), float(part[-1]), 0.0, p_value, len(part))


def _rise(u: FloatArray, onset: int, base: float, score: float, p_value: float) -> Rise:
    back = np.flatnonzero(u[onset:] <= base + 0.15 * float(u[onset] - base))
    end = onset + int(back[0]) if len(back) else None
    peak = onset + int(np.argmax(u[onset:end]))
    return Rise(onset, peak, end, base, float(u[peak]), min(score, 1e6), p_value, 1)


def _moved(rise: Rise, by: int) -> Rise:
    end = None if rise.end is None else rise.end + by
    return Rise(rise.onset + by, rise.peak + by, end, rise.base, rise.top, rise.score, rise.p_value, rise.width)
