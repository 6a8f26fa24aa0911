"""The loss, or the time of a step, repeats itself: epochs, evaluations, checkpoints, a cyclic schedule. Healthy, so info."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.period import Period, find_period
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

NAME = "periodic"

SAME = 0.1
"""Relative difference up to which two periods are the same."""

CHANCE = 1e-4
"""Accepted chance: a curve has many lags, and correlated noise is common."""


def detect(curves: Curves) -> list[Event]:
    """The period of the primary loss, and of the primary step time or throughput."""
    events = []
    for role in (Role.LOSS, Role.STEP_TIME, Role.THROUGHPUT):
        signal = curves.get(role)
        if signal is None or (role is Role.THROUGHPUT and curves.get(Role.STEP_TIME) is not None):
            continue
        period = find_period(signal.u)
        if period is not None and period.p_value <= CHANCE:
            events.append(_event(curves, signal, period))
    return events


def _event(curves: Curves, signal: Prepared, period: Period) -> Event:
    steps = period.points * signal.every
    step = int(signal.steps[period.first])
    begins = f" from step {step} on" if period.first > 0 else ""
    swing = f"by a factor of {np.exp(period.swing):.3g}" if signal.log else f"by {period.swing:.3g}"
    base = float(np.median(signal.values[period.first :]))
    return Event(
        kind=EventKind.PERIODIC,
        severity=Severity.INFO,
        confidence=float(np.clip(period.height, 0.5, 0.99)),
        signal=signal.name,
        onset_step=step,
        peak_step=step,
        baseline=base,
        p_value=period.p_value,
        text=f"{signal.name} swings {swing} every {steps:.0f} steps{begins}{_why(curves, steps)}",
    )


def _why(curves: Curves, steps: float) -> str:
    """What else comes with the same period."""
    epoch = curves.run.signal(Role.EPOCH)
    if not isinstance(epoch, Absent) and len(epoch) > 1:
        curve = epoch.curve(curves.attempts)
        span = float(curve.values[-1] - curve.values[0])
        length = float(curve.steps[-1] - curve.steps[0]) / span if span > 0 else 0.0
        if length > 0 and abs(steps / length - 1) <= SAME:
            return f"; an epoch has {length:.0f} steps"
    schedule = curves.schedule
    if schedule is not None and schedule.shape == "restarts":
        ups = [j.step for j in schedule.ups]
        cycle = float(np.median(np.diff(ups))) if len(ups) > 1 else 0.0
        if cycle > 0 and abs(steps / cycle - 1) <= SAME:
            return f"; so does the learning rate, every {cycle:.0f} steps"
    for role, what in ((Role.VAL_LOSS, "evaluations come"),):
        other = curves.get(role)
        if other is not None and len(other) > 2 and abs(steps / other.every - 1) <= SAME:
            return f"; {what} every {other.every:.0f} steps"
    return ""
