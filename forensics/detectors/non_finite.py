"""NaN and infinite values of the loss and of the gradient norm: the first bad step, isolated or to the end."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Curve, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "non_finite"

FEWEST, FILLED, EVEN = 10, 0.6, 2.0
"""Values that show how a column is filled; the largest share of rows that may hold one; the largest distance over the usual one."""

JOIN_POINTS = 20
"""Bad values this close together, in logged points, are one event."""


def detect(curves: Curves) -> list[Event]:
    """Non-finite stretches of the loss, and of the gradient norm where the loss scale did not fall with it."""
    events: list[Event] = []
    for role in (Role.LOSS, Role.GRAD_NORM):
        signal = curves.run.signal(role)
        if isinstance(signal, Absent):
            continue
        curve = signal.curve(curves.attempts)
        events += [_event(signal.name, role, curve, first, last) for first, last in _stretches(curve, _explained(curves) if role is Role.GRAD_NORM else set())]
    return events


def _explained(curves: Curves) -> set[int]:
    """Steps at which the loss scale fell, or may have: a non-finite gradient there is a skipped step, which is how scaling works."""
    signal = curves.run.signal(Role.LOSS_SCALE)
    if isinstance(signal, Absent):
        return set()
    curve = signal.curve(curves.attempts)
    falls = np.flatnonzero(curve.values[1:] < curve.values[:-1]) + 1
    end = np.arange(max(0, len(curve) - 2), len(curve))  # a fall after the last point is not logged any more
    near = np.concatenate([falls - 1, falls, falls + 1, end])
    return set(curve.steps[np.clip(near, 0, max(len(curve) - 1, 0))].tolist()) if len(curve) else set()


def _not_logged(curve: Curve) -> bool:
    """NaN in most rows, with values at even distances up to the end: a table with a column that is filled every few steps."""
    good = np.flatnonzero(~np.isnan(curve.values))
    if len(good) < FEWEST or len(good) > FILLED * len(curve):
        return False
    apart = np.diff(good, append=len(curve))
    return bool(apart.max() <= EVEN * float(np.median(apart)))


def _stretches(curve: Curve, explained: set[int]) -> list[tuple[int, int]]:
    bad = np.flatnonzero(~np.isfinite(curve.values))
    if _not_logged(curve):
        bad = np.flatnonzero(np.isinf(curve.values))
    if explained:
        bad = np.array([i for i in bad.tolist() if int(curve.steps[i]) not in explained], dtype=np.int64)
    if len(bad) == 0:
        return []
    cuts = np.flatnonzero(np.diff(bad) > JOIN_POINTS) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(bad, cuts)]


def _event(name: str, role: Role, curve: Curve, first: int, last: int) -> Event:
    to_the_end = last == len(curve) - 1
    bad = int((~np.isfinite(curve.values[first : last + 1])).sum())
    before = curve.values[:first]
    base = float(np.median(before[np.isfinite(before)][-24:])) if np.isfinite(before).any() else None
    onset = int(curve.steps[first])
    how = "to the end of the log" if to_the_end and bad > 1 else f"{bad} logged value{'s' if bad > 1 else ''}"
    lost = to_the_end and role is Role.LOSS
    return Event(
        kind=EventKind.NON_FINITE,
        severity=Severity.CRITICAL if lost else Severity.WARNING,
        confidence=1.0,
        signal=name,
        onset_step=onset,
        peak_step=onset,
        end_step=None if to_the_end else int(curve.steps[min(last + 1, len(curve) - 1)]),
        recovered=not to_the_end,
        baseline=base,
        peak=float(curve.values[first]),
        text=f"{name} is {_word(float(curve.values[first]))} from step {onset}, {how}",
    )


def _word(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinite"
