"""The loss stops falling, or never fell, although the schedule had not run out.

Most plateaus are how training ends, so they are info. A loss that was logged from the first step on, with little noise, and never
moved at all is a warning: nothing was learned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.model import Absent, Event, EventKind, FloatArray, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.primitives.robust import block_medians, block_size, stretches
from forensics.primitives.tails import Tail
from forensics.vocabulary import Role

NAME = "plateau"

FEWEST, SHARE = 100, 0.1
"""Logged points of the shortest plateau, and its share of the run (catalogue: the larger of the two)."""

FEWEST_FLAT = 300
"""Points of a loss that never fell."""

BLOCKS = 240
"""Medians of the curve on which the bend is looked for."""

FLAT_SDS = 0.5
"""Change over a plateau in sds of single points (catalogue)."""

SURE = 3.0
"""Standard errors up to which a change is none: a long slow fall is no plateau however small it is."""

FELL_SDS = 5.0
"""What the curve must have fallen before, in sds of single points."""

BEND = 6.0
"""Standard errors by which the fall at the earlier pace would have shown."""

CHANCE = 0.01
"""Accepted chance that the bend is none."""

QUIET = 0.05
"""Noise of the log loss below which a curve that does not move has not learned anything."""

DEGREES = 12.0
"""Degrees of freedom assumed for the test."""

MEDIAN_LOSS = 1.57


def detect(curves: Curves) -> list[Event]:
    """At most one plateau of the primary loss: the one the log ends with, or that ends where the schedule's tail begins."""
    loss = curves.get(Role.LOSS)
    if loss is None or len(loss) < 2 * FEWEST or float(np.ptp(loss.u)) == 0.0:
        return []
    stop = _tail(curves, loss)
    if stop < 2 * FEWEST:
        return []
    size = block_size(stop, BLOCKS)
    flat = _Flat(block_medians(loss.u[:stop], size), size, float(np.median(stretches(loss.noise[stop // 2 : stop]))))
    if stop >= FEWEST_FLAT and flat.from_block(0):
        return _never(curves, loss, stop, flat)
    bend = _bend(flat, max(FEWEST, int(SHARE * len(loss))))
    return [] if bend is None else [_event(loss, bend.block * flat.size, stop, bend.p_value)]


class _Flat:
    """Which ends of a curve of block medians are flat. ``sd`` is the noise of single points, ``se`` that of one median."""

    def __init__(self, level: FloatArray, size: int, sd: float) -> None:
        self.level, self.size, self.sd = level, size, sd
        steps = np.diff(level)
        own = 1.4826 * float(np.median(np.abs(steps - np.median(steps)))) / np.sqrt(2.0) if len(steps) else 0.0
        self.se = max(own, sd * float(np.sqrt(MEDIAN_LOSS / size)) * 0.5, 1e-12)

    def change(self, first: int, last: int) -> tuple[float, float]:
        """Change along the straight line through some medians, and its standard error."""
        y = self.level[first:last]
        x = np.arange(len(y)) - (len(y) - 1) / 2.0
        spread = float(x @ x)
        return float(x @ y) / spread * len(y), self.se * len(y) / float(np.sqrt(spread))

    def from_block(self, first: int, last: int | None = None) -> bool:
        """The medians neither rise nor fall, as a whole and in both halves."""
        last = len(self.level) if last is None else last
        middle = (first + last) // 2
        parts = [self.change(first, last), self.change(first, middle), self.change(middle, last)]
        away = abs(float(np.median(self.level[first:middle])) - float(np.median(self.level[middle:last])))
        return away <= FLAT_SDS * self.sd and all(abs(c) <= min(FLAT_SDS * self.sd + SURE * e, SURE * e) for c, e in parts)


class _Bend:
    def __init__(self, block: int, p_value: float) -> None:
        self.block, self.p_value = block, p_value


def _bend(flat: _Flat, shortest: int) -> _Bend | None:
    """The first block from which the curve is flat to the end, if it was falling much faster before."""
    n = len(flat.level)
    least = max(8, -(-shortest // flat.size))
    for first in range(max(8, n // 20), n - least, max(1, n // 60)):
        if not flat.from_block(first):
            continue
        length = min(n - first, first)
        pace, error = flat.change(first - length, first)
        later, later_error = flat.change(first, first + length)
        z = (later - pace) / float(np.hypot(error, later_error))
        fell = float(np.median(flat.level[: max(1, n // 50)]) - np.median(flat.level[first:]))
        p_value = Tail(np.empty(0), DEGREES).p_value(z, n)
        if fell < FELL_SDS * flat.sd or z < BEND or p_value > CHANCE:
            return None
        return _Bend(first, p_value)
    return None


def _tail(curves: Curves, loss: Prepared) -> int:
    """Position up to which the learning rate still trains: before the tail of its schedule, and before it fell to nothing."""
    schedule = curves.schedule
    if schedule is None or schedule.shape == "constant":
        return len(loss)
    low = np.flatnonzero(schedule.values > 0.1 * schedule.peak)
    last = int(schedule.steps[low[-1]]) if len(low) else int(loss.steps[-1])
    return min(len(loss), loss.at(last + 1))


def _never(curves: Curves, loss: Prepared, stop: int, flat: _Flat) -> list[Event]:
    from_scratch = loss.steps[0] <= 2 * max(1.0, loss.every) and len(curves.run.attempts) <= 1
    ordinary = objective(curves.run) is Objective.ORDINARY and not isinstance(curves.run.signal(Role.LR), Absent)
    warn = from_scratch and ordinary and loss.log and flat.sd <= QUIET
    base, last = (float(np.median(loss.values[k])) for k in (slice(0, FEWEST), slice(stop - FEWEST, stop)))
    first = int(loss.steps[0])
    text = f"{loss.name} never fell: {base:.4g} at the start, {last:.4g} at the end"
    event = _made(loss, first, (base, last), text)
    return [replace(event, severity=Severity.WARNING if warn else Severity.INFO)]


def _event(loss: Prepared, index: int, stop: int, p_value: float) -> Event:
    levels = float(np.median(loss.values[index : index + FEWEST])), float(np.median(loss.values[stop - FEWEST : stop]))
    step = int(loss.steps[index])
    text = f"{loss.name} stopped falling around step {step}: it stayed at {levels[1]:.4g} for the {stop - index} points after it"
    return replace(_made(loss, step, levels, text), p_value=p_value)


def _made(loss: Prepared, step: int, levels: tuple[float, float], text: str) -> Event:
    return Event(
        kind=EventKind.PLATEAU,
        severity=Severity.INFO,
        confidence=0.7,
        signal=loss.name,
        onset_step=step,
        peak_step=step,
        baseline=levels[0],
        peak=levels[1],
        height=levels[1] - levels[0],
        text=text,
    )
