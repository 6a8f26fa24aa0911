"""What an incident cost: how high the loss stood, for how long, and how many steps of training it undid.

A run that comes back to the level it had has lost the steps in between; one that comes back to the course it was on has lost
less; one that stays on a level it had passed long before has lost everything since then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray
from forensics.primitives.prepared import Prepared

CALM = 24
"""Points before and after an incident that tell the level there."""

LEVEL = 9
"""Points of the medians among which an earlier time with the same level is looked for."""

SURE = 2.0
"""Standard errors by which two levels must differ to count as different."""

COURSE = 200
"""Points before an incident that tell how fast the loss was falling."""


@dataclass(frozen=True, slots=True)
class Setback:
    """``height`` of the loss above its level before, in its own unit; ``area`` under it, in loss x steps; ``steps`` of training lost."""

    height: float
    area: float
    steps: float


def setback(loss: Prepared, onset: int, end: int | None) -> Setback | None:
    """The cost of an incident between two positions of a loss (``end`` None: to the end of the log); None at the very start."""
    start = max(0, onset - CALM)
    stop = len(loss) if end is None else min(end, len(loss))
    if onset - start < 3 or stop <= onset:
        return None
    base = float(np.median(loss.values[start:onset]))
    inside = loss.values[onset:stop]
    spans = np.diff(loss.steps[onset : stop + 1], append=loss.steps[stop - 1 : stop] + int(loss.every) if stop >= len(loss) else [])
    area = float(np.maximum(inside - base, 0.0) @ spans[: len(inside)])
    return Setback(float(inside.max()) - base, area, _lost(loss, onset, stop, end is not None))


def _lost(loss: Prepared, onset: int, stop: int, over: bool) -> float:
    """Steps from the earlier time at which the run had come as far as it is after the incident, until then."""
    ahead = loss.u[stop : stop + CALM] if over and stop < len(loss) else loss.u[max(onset, len(loss) - CALM) :]
    level, base = float(np.median(ahead)), float(np.median(loss.u[max(0, onset - CALM) : onset]))
    last = float(loss.steps[min(stop, len(loss) - 1)])
    begin = float(loss.steps[onset])
    unsure = SURE * 1.25 * float(loss.noise[onset]) * float(np.sqrt(1.0 / max(len(ahead), 1) + 1.0 / CALM))
    if level > base + unsure and not over:
        return last - _first_at(loss, onset, level)
    gained = base - level
    rate = _rate(loss.u, onset) / max(loss.every, 1.0)
    if gained <= unsure or rate <= 0:
        return last - begin
    return float(np.clip(last - begin - gained / rate, 0.0, last - begin))


def _first_at(loss: Prepared, onset: int, level: float) -> float:
    """The first step before the incident by which the loss had come down to a level."""
    before = loss.u[:onset]
    whole = len(before) // LEVEL
    if whole == 0:
        return float(loss.steps[0])
    medians = np.median(before[: whole * LEVEL].reshape(-1, LEVEL), axis=1)
    low = np.flatnonzero(medians <= level)
    return float(loss.steps[int(low[0]) * LEVEL]) if len(low) else float(loss.steps[onset])


def _rate(u: FloatArray, onset: int) -> float:
    """How much the curve was falling per point before a position."""
    before = u[max(0, onset - COURSE) : onset]
    half = len(before) // 2
    return float(np.median(before[:half]) - np.median(before[half:])) / half if half else 0.0
