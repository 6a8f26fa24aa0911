"""For a while the loss comes in bursts: a stretch in which its level and its spread are many times those before and after it.

On the logarithmic scale of the other detectors a loss near zero may climb for long before it shows in its own unit; what a person
sees there are the bursts.
"""

from __future__ import annotations

import math

import numpy as np

from forensics.model import Event, EventKind, FloatArray, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.primitives.robust import block_medians, block_size, centred_median, forward_median, local_sd, mad_sd, slow_median
from forensics.primitives.tails import Tail
from forensics.vocabulary import Role

NAME = "bursts"

FEWEST = 200
"""Points of a curve in which a stretch can be told from its surroundings."""

SHORTEST = 30
"""Points of the shortest stretch."""

TIMES = 3.0
"""How many times the spread and the level before it a stretch must have (catalogue)."""

SPREAD_POINTS = 31
"""Points of the local spread."""

SURROUNDINGS = 100
"""Points before and after a stretch that it is compared with."""

CHANCE = 0.05
"""Accepted chance that the spread before and inside are the same."""

CLIMB = 8.0
"""How far the slow course must lie above its own earlier minimum, as a factor, for the search to begin."""

TURNS = 0.5
"""Share of neighbouring steps that go opposite ways: white noise has two thirds, a slow bump few (catalogue: 0.6)."""

NEIGHBOURS = 5
"""Points of which most lie above half of the level inside a stretch."""

DEGREES = 8.0
"""Degrees of freedom assumed for the test."""


def detect(curves: Curves) -> list[Event]:
    """Stretches of bursts of the primary loss that end."""
    loss = curves.get(Role.LOSS)
    if loss is None or len(loss) < FEWEST or not loss.log:
        return []
    first = _valley(loss.values)
    if first is None:
        return []
    event = _stretch(curves, loss, first)
    return [] if event is None else [event]


def _valley(values: FloatArray) -> int | None:
    """Where the slow course begins to lie low before it climbs to a multiple of that; None if it never does."""
    size = block_size(len(values), 2000)
    course = centred_median(block_medians(values, size), 15)
    lowest = np.minimum.accumulate(course)
    if not (lowest[-1] > 0 and (course >= CLIMB * lowest).any()):
        return None
    climbed = int(np.argmax(course >= CLIMB * lowest))
    return int(np.argmax(course <= 2.0 * lowest[climbed])) * size


def _stretch(curves: Curves, loss: Prepared, first: int) -> Event | None:
    """The stretch in which the curve varies most, up to where it varies TIMES less."""
    values = loss.values[first:]
    spread = local_sd(values - slow_median(values, SPREAD_POINTS), SPREAD_POINTS)
    top = int(np.argmax(spread))
    calm = np.flatnonzero(spread < spread[top] / TIMES)
    before, after = calm[calm < top], calm[calm > top]
    if len(before) < SHORTEST or len(after) < SHORTEST or after[0] - before[-1] < SHORTEST or after[0] - before[-1] > len(values) // 2:
        return None
    start, stop = _edges(values, int(before[-1]) + 1, int(after[0]))
    inside, earlier, later = values[start:stop], values[max(0, start - SURROUNDINGS) : start], values[stop : stop + SURROUNDINGS]
    if min(len(inside), len(earlier), len(later)) < SHORTEST // 2:
        return None
    steps = np.diff(inside)
    turns = float((steps[1:] * steps[:-1] < 0).mean())
    if turns < TURNS or float(np.median(inside)) < TIMES * max(float(np.median(earlier)), 0.5 * float(np.median(later))):
        return None
    ratio = mad_sd(inside) / max(mad_sd(earlier), 1e-300)
    z = math.log(max(ratio, 1.0)) / (1.17 * math.sqrt(1.0 / len(inside) + 1.0 / len(earlier)))
    p_value = Tail(np.empty(0), DEGREES).p_value(z, len(values) / len(inside))
    if p_value > CHANCE:
        return None
    peak = start + int(np.argmax(inside))
    base, height = float(np.median(earlier)), float(values[peak])
    onset, over = int(loss.steps[first + start]), int(loss.steps[first + stop])
    return Event(
        kind=EventKind.OSCILLATION,
        severity=Severity.WARNING if objective(curves.run) is Objective.ORDINARY else Severity.INFO,
        confidence=0.8,
        signal=loss.name,
        onset_step=onset,
        peak_step=int(loss.steps[first + peak]),
        end_step=over,
        recovered=True,
        baseline=base,
        peak=height,
        height=height - base,
        p_value=p_value,
        text=f"{loss.name} comes in bursts up to {height:.4g} between steps {onset} and {over}; before, it varied {ratio:.1f} times less",
    )


def _edges(values: FloatArray, start: int, stop: int) -> tuple[int, int]:
    """The first and the last burst: values above half of what bursts reach, as most of their neighbours inside are."""
    half = 0.5 * float(np.quantile(values[start:stop], 0.75))
    low, high = max(0, start - SPREAD_POINTS), min(len(values), stop + SPREAD_POINTS)
    part = values[low:high]
    first = np.flatnonzero((part > half) & (forward_median(part, NEIGHBOURS) > half))
    last = np.flatnonzero((part > half) & (forward_median(part[::-1], NEIGHBOURS)[::-1] > half))
    return (low + int(first[0]) if len(first) else start), (min(low + int(last[-1]) + 1, len(values) - 1) if len(last) else stop)
