"""Steps that were written twice, and batches that were seen before: a restart of the run or of its data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forensics.model import Absent, Event, EventKind, IntArray, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "restart"

SAME_RUN = 10
"""This many consecutive batches in the order of an earlier stretch are the same stretch of data, not chance."""


def detect(curves: Curves) -> list[Event]:
    """Overlapping attempts, and batch ids that start again without an epoch to explain it."""
    return _attempts(curves) + _data(curves)


def _attempts(curves: Curves) -> list[Event]:
    attempts = curves.run.attempts[: curves.attempts]
    name = curves.run.signal(Role.LOSS)
    signal = "step" if isinstance(name, Absent) else name.name
    events = []
    for previous, attempt in pairwise(attempts):
        overlap = previous.last_step - attempt.first_step + 1
        if overlap <= 0:
            text = f"a new process continued at step {attempt.first_step}, after {previous.last_step}"
        else:
            text = f"steps {attempt.first_step} to {previous.last_step} were written twice: the run went back and did them again"
        events.append(
            Event(
                kind=EventKind.RESTART,
                severity=Severity.WARNING if overlap > 0 else Severity.INFO,
                confidence=0.99,
                signal=signal,
                onset_step=attempt.first_step,
                peak_step=attempt.first_step,
                end_step=max(previous.last_step, attempt.first_step),
                recovered=True,
                text=text,
            )
        )
    return events


def _data(curves: Curves) -> list[Event]:
    signal = curves.run.signal(Role.BATCH_ID)
    if isinstance(signal, Absent):
        return []
    curve = signal.curve(curves.attempts)
    if len(curve) < 3 * SAME_RUN or not np.isfinite(curve.values).all():
        return []
    starts = _repeats(signal.values[curve.index])
    if len(starts) == 0 or len(starts) > 1 or _epochs(curves, curve.steps, starts):
        return []
    step = int(curve.steps[starts[0]])
    text = f"{signal.name} starts again at {curve.values[starts[0]]:g} at step {step}: batches that were already seen come again in the same order"
    return [
        Event(
            kind=EventKind.RESTART,
            severity=Severity.WARNING,
            confidence=0.8,
            signal=signal.name,
            onset_step=step,
            peak_step=step,
            end_step=None,
            recovered=False,
            baseline=float(curve.values[starts[0] - 1]),
            peak=float(curve.values[starts[0]]),
            text=text,
        )
    ]


def _repeats(ids: np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """Positions where an earlier stretch of the data begins again."""
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    origin = first[inverse]
    position = np.arange(len(ids))
    offset = position - origin
    repeated = offset > 0
    same = repeated[1:] & (offset[1:] == offset[:-1])
    begins = np.flatnonzero(repeated & ~np.concatenate([[False], same]))
    ends = np.append(begins[1:], len(ids)) if len(begins) else begins
    return [int(b) for b, e in zip(begins, ends, strict=True) if repeated[b : min(e, b + SAME_RUN)].sum() >= SAME_RUN and offset[b] > 1]


def _epochs(curves: Curves, steps: IntArray, starts: list[int]) -> bool:
    """The data began again because an epoch ended."""
    signal = curves.run.signal(Role.EPOCH)
    if isinstance(signal, Absent):
        return False
    epoch = signal.curve(curves.attempts)
    whole = np.floor(epoch.values + 1e-9)
    turns = epoch.steps[np.flatnonzero(np.diff(whole) > 0) + 1]
    every = float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0
    return any(bool((np.abs(turns - steps[s]) <= 2 * every).any()) for s in starts)
