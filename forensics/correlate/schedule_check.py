"""The learning-rate schedule as logged against the one in the configuration: peak, warmup, length, end value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.correlate.settings import Settings
from forensics.primitives.lr_schedule import LrSchedule

SAME_RATE = 0.02
"""Relative difference of two learning rates that is printing (logs hold three digits)."""

SAME_LENGTH = 0.05
"""Relative difference of two lengths in steps that is counting from zero or one, or a scheduler stepped once more."""

WHOLE = 0.03
"""How close a ratio must be to a whole number to be called one."""

FINISHED = 0.98
"""Share of the planned steps from which a run has reached its end value."""


@dataclass(frozen=True, slots=True)
class Check:
    """One parameter of the schedule. ``agrees`` None: not comparable; ``times`` the whole number by which they differ, if one does.

    ``planned`` and ``logged`` are learning rates or steps; ``step`` is where the logged one is read off.
    """

    what: str
    planned: float
    logged: float
    agrees: bool | None
    times: int | None
    step: int
    text: str


def check_schedule(schedule: LrSchedule | None, settings: Settings, every: float = 1.0) -> tuple[Check, ...]:
    """Every parameter that both the configuration and the log hold."""
    if schedule is None:
        return ()
    found = (_peak(schedule, settings), _warmup(schedule, settings, every), _length(schedule, settings), _floor(schedule, settings))
    return tuple(c for c in found if c is not None)


def sentence(checks: tuple[Check, ...]) -> str:
    """All checks in one line."""
    return "; ".join(c.text for c in checks)


def _peak(schedule: LrSchedule, settings: Settings) -> Check | None:
    planned = settings.lr
    at = int(np.argmax(np.isclose(schedule.values, schedule.peak, rtol=1e-9)))
    still_climbing = schedule.warmup_end >= len(schedule.values) - 1 and schedule.warmup_end > 0
    if planned is None or planned <= 0 or (still_climbing and schedule.peak < planned):
        return None
    agrees = abs(schedule.peak / planned - 1) <= SAME_RATE
    text = f"its maximum is {schedule.peak:.3g} as configured" if agrees else f"its maximum is {schedule.peak:.3g}, the configuration says {planned:.3g}"
    return Check("peak", planned, schedule.peak, agrees, _whole(schedule.peak, planned), int(schedule.steps[at]), text)


def _warmup(schedule: LrSchedule, settings: Settings, every: float) -> Check | None:
    planned = settings.warmup
    if planned is None and settings.warmup_ratio is not None and settings.total_steps:
        planned = settings.warmup_ratio * settings.total_steps
    if planned is None or planned < 0 or int(schedule.steps[0]) > 5 * every:
        return None  # a log that begins later does not show the warmup
    logged = float(schedule.warmup_steps)
    if schedule.warmup_end >= len(schedule.values) - 1 and logged < planned:
        return None  # still warming up
    agrees = abs(logged - planned) <= max(2 * every, SAME_LENGTH * planned)
    text = f"the warmup took {logged:.0f} steps as configured" if agrees else f"the warmup took {logged:.0f} steps, the configuration says {planned:.0f}"
    return Check("warmup", planned, logged, agrees, _whole_length(logged, planned), int(schedule.steps[schedule.warmup_end]), text)


def _length(schedule: LrSchedule, settings: Settings) -> Check | None:
    planned, last = settings.total_steps, int(schedule.steps[-1])
    end = schedule_end(schedule)
    if planned is None or planned <= 0 or end is None or schedule.shape == "multi-step":
        return None  # the last step of a staircase is not its end
    logged = float(end - int(schedule.steps[0]))
    agrees = abs(logged - planned) <= max(2.0, SAME_LENGTH * planned)
    if agrees:
        text = f"it ends after {logged:.0f} steps as configured"
    else:
        text = f"it is over after {logged:.0f} steps, the configuration has {planned:.0f} (the log goes on to step {last})"
    return Check("length", planned, logged, agrees, _whole_length(logged, planned), end, text)


def schedule_end(schedule: LrSchedule) -> int | None:
    """The step at which a decay reached the value it then kept for a tenth of the run; None where it never stays."""
    values = schedule.values
    moving = np.flatnonzero(np.abs(values - values[-1]) > 1e-6 * schedule.peak)
    if len(moving) == 0 or values[-1] > 0.9 * schedule.peak or len(values) - int(moving[-1]) - 1 < max(10, 0.1 * len(values)):
        return None
    return int(schedule.steps[int(moving[-1]) + 1])


def _floor(schedule: LrSchedule, settings: Settings) -> Check | None:
    """A minimum at or above the peak can only be a share of it; not every schedule uses one, so only its agreement is told."""
    planned, total = settings.min_lr, settings.total_steps
    if planned is None or planned < 0 or total is None or schedule.steps[-1] < FINISHED * total:
        return None
    rate = planned if planned < schedule.peak else planned * schedule.peak if planned < 1 else None
    if rate is None:
        return None
    logged = float(schedule.values[-1])
    agrees = abs(logged - rate) <= SAME_RATE * schedule.peak
    if not agrees and rate != planned:
        return None
    text = f"it ends at {logged:.3g} as configured" if agrees else f"it ends at {logged:.3g}, the configuration says {rate:.3g}"
    return Check("end", rate, logged, agrees, None, int(schedule.steps[-1]), text)


def _whole(logged: float, planned: float) -> int | None:
    """How many times longer or larger one is than the other, where that is a whole number of two and more."""
    if logged <= 0 or planned <= 0:
        return None
    ratio = max(logged / planned, planned / logged)
    whole = round(ratio)
    return whole if whole >= 2 and abs(ratio - whole) <= WHOLE * whole else None


def _whole_length(logged: float, planned: float) -> int | None:
    """The same for lengths in steps, which are counted from zero or from one."""
    return _whole(logged, planned) or _whole(logged + 1, planned)
