"""The clock ran on, and no step was logged: in the middle of a run, or after its last step.

A pause in the middle is info: evaluations, checkpoints and a lent-out machine look the same. A log in which other records go on
long after the last step, and that nobody finished, is a warning: a run that waits costs as much as one that trains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import Absent, Event, EventKind, FloatArray, IntArray, Severity, Signal
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "hang"

FEWEST = 20
"""Timed steps that tell what is usual."""

STEPS = 20.0
"""A gap of this many usual times of a step (catalogue)."""

STILL = 600.0
"""... and of so many seconds (catalogue: ten minutes)."""

REGULAR, ALIKE = 3, 3.0
"""So many pauses within this factor of each other are a habit of the run: evaluations or checkpoints."""

MOST = 5
"""Pauses listed, the longest."""


@dataclass(frozen=True, slots=True, eq=False)
class _Clock:
    """Steps and their times (points,), ascending, of one process; ``usual`` seconds of a step; ``name`` of the signal."""

    name: str
    steps: IntArray
    times: FloatArray
    usual: float


def detect(curves: Curves) -> list[Event]:
    """Pauses between steps, and a clock that runs on after the last one."""
    clock = _clock(curves)
    if clock is None:
        return []
    last = after_last_step(curves)
    return _pauses(clock) + ([] if last is None else [last])


def after_last_step(curves: Curves) -> Event | None:
    """The hang at the end of a log, if there is one."""
    clock = _clock(curves)
    if clock is None or curves.attempts is not None:
        return None
    latest = max((float(np.nanmax(s.wall_times)) for s in curves.run.signals if _timed(s) and s.wall_times is not None), default=clock.times[-1])
    still = latest - float(clock.times[-1])
    if still < max(STILL, STEPS * clock.usual):
        return None
    notes = curves.run.notes
    done = notes.get("finished") is True and notes.get("exit_code") in {None, 0}
    step = int(clock.steps[-1])
    return Event(
        kind=EventKind.UNFINISHED,
        severity=Severity.INFO if done else Severity.WARNING,
        confidence=0.6 if done else 0.8,
        signal=clock.name,
        onset_step=step,
        peak_step=step,
        end_step=step,
        text=f"no step was logged after {step}, but other records go on for {_span(still)} (a step took {_span(clock.usual)}): the run hung",
    )


def _pauses(clock: _Clock) -> list[Event]:
    waits, steps = np.diff(clock.times), np.diff(clock.steps)
    long = np.flatnonzero((waits >= STILL) & (waits / np.maximum(steps, 1) >= STEPS * clock.usual))
    irregular = [i for i in long.tolist() if _alike(waits[long], float(waits[i])) < REGULAR]
    longest = sorted(sorted(irregular, key=lambda i: -float(waits[i]))[:MOST])
    return [_pause(clock, i, float(waits[i])) for i in longest]


def _alike(waits: FloatArray, wait: float) -> int:
    return int(((waits >= wait / ALIKE) & (waits <= wait * ALIKE)).sum())


def _pause(clock: _Clock, index: int, wait: float) -> Event:
    before, after = int(clock.steps[index]), int(clock.steps[index + 1])
    usual = _span(clock.usual * max(after - before, 1))
    return Event(
        kind=EventKind.THROUGHPUT_CHANGE,
        severity=Severity.INFO,
        confidence=0.9,
        signal=clock.name,
        onset_step=after,
        peak_step=after,
        end_step=after,
        recovered=True,
        baseline=clock.usual,
        peak=wait,
        height=wait - clock.usual,
        text=f"{_span(wait)} passed between steps {before} and {after}, which usually takes {usual}: a pause, or a hang that ended",
    )


def _timed(signal: Signal) -> bool:
    return signal.wall_times is not None and len(signal) > 0 and bool(np.isfinite(signal.wall_times).any())


def _clock(curves: Curves) -> _Clock | None:
    """The times of the steps of the last process, from the loss or else the gradient norm."""
    for role in (Role.LOSS, Role.GRAD_NORM, Role.LR):
        signal = curves.run.signal(role)
        if isinstance(signal, Absent) or signal.wall_times is None:
            continue
        curve = signal.curve(curves.attempts)
        index = curve.index[curve.index >= signal.starts[-1 if curves.attempts is None else min(curves.attempts, len(signal.starts)) - 1]]
        times, steps = signal.wall_times[index], signal.steps[index]
        good = np.isfinite(times)
        times, steps = times[good], steps[good]
        if len(times) < FEWEST or (np.diff(times) < 0).any():
            continue
        usual = float(np.median(np.diff(times) / np.maximum(np.diff(steps), 1)))
        if usual > 0:
            return _Clock(signal.name, steps, times, usual)
    return None


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
