"""The learning rate does what no schedule plans: jumps up, warms up again, or falls to nothing in mid-run."""

from __future__ import annotations

from forensics.model import Absent, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.lr_schedule import LrJump, LrSchedule
from forensics.vocabulary import Role

NAME = "lr_anomaly"

GRADUAL = 20
"""Logged points of a climb that is planned: a late warmup, or a cycle. What it does to the loss is seen there."""


def detect(curves: Curves) -> list[Event]:
    """Upward jumps after the warmup, and a learning rate of zero outside the tail. Planned drops are not events."""
    signal, schedule = curves.run.signal(Role.LR), curves.schedule
    if schedule is None or isinstance(signal, Absent):
        return []
    events = [_jump(signal.name, schedule, jump) for jump in schedule.ups]
    if schedule.zero_from is not None:
        events.append(_zero(signal.name, schedule, schedule.zero_from))
    return events


def _jump(name: str, schedule: LrSchedule, jump: LrJump) -> Event:
    start = jump.index
    dip = next((d for d in schedule.drops if 0 < start - d.index <= 2), None)
    onset = dip.step if dip is not None else jump.step
    end = int(schedule.steps[jump.returns]) if jump.returns is not None else None
    if jump.new_maximum and jump.ramp >= GRADUAL:
        how, severity = "a climb as slow as a warmup", Severity.INFO
    elif jump.new_maximum:
        how, severity = "above everything before it", Severity.WARNING
    else:
        how, severity = "back up to where the schedule had been before", Severity.INFO
    return Event(
        kind=EventKind.LR_ANOMALY,
        severity=severity,
        confidence=0.97 if jump.new_maximum else 0.7,
        signal=name,
        onset_step=onset,
        peak_step=int(schedule.steps[start + jump.ramp - 1]),
        end_step=end,
        recovered=end is not None,
        baseline=jump.before,
        peak=jump.after,
        height=jump.after - jump.before,
        text=f"{name} went from {jump.before:.3g} to {jump.after:.3g} (x{jump.factor:.3g}) in {jump.ramp} logged point{'s' if jump.ramp > 1 else ''}, {how}",
    )


def _zero(name: str, schedule: LrSchedule, position: int) -> Event:
    step = int(schedule.steps[position])
    before, after = float(schedule.values[position - 1]), float(schedule.values[position])
    return Event(
        kind=EventKind.LR_ANOMALY,
        severity=Severity.WARNING,
        confidence=0.97,
        signal=name,
        onset_step=step,
        peak_step=step,
        end_step=None,
        recovered=False,
        baseline=before,
        peak=after,
        height=after - before,
        text=f"{name} fell from {before:.3g} to {after:.3g} at step {step} and stayed there: nothing was learned after it",
    )
