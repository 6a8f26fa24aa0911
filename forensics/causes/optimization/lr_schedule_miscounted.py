"""The scheduler advanced more or less often than the optimizer, so the schedule ended at the wrong step.

What happened
-------------
The scheduler is stepped once per process, once per micro-batch, or also on skipped steps, instead of once per
optimizer step. Warmup and decay are then shortened by that factor N, and the rest of the run trains at the final
learning rate.

How it shows in logs
--------------------
The learning rate reaches its end value at total/N, where N is the number of processes or the accumulation factor, and
warmup ends N times too early. The loss goes flat from there on: a plateau that starts where the schedule ended.

The rule compares total and warmup steps of the configuration with the logged curve: a whole number of at least two
between them, and an event at or after the early end, or within three times the short warmup.

What would contradict it
------------------------
The logged learning rate agrees with the configured formula within 1 % at five steps spread over the run.

Looks like, but is not
----------------------
lr_too_low_or_zero: the learning rate falls to nothing abruptly; here the planned curve is intact, only compressed.

resume_scheduler_lost: the curve starts again at a resume; here it is wrong from the first step.

How to confirm
--------------
Compute the learning rate from the configuration at five steps and compare with the log. Look for a ratio that equals
the process count or the accumulation factor. No replay is needed.

Fix
---
Step the scheduler once per optimizer step. Where a wrapper steps it once per process, multiply the total by N. Decide
whether skipped steps count, and count them the same way in the schedule and in the log.

References
----------
Issue threads: accelerate 2926 and 662, transformers 24088, LTX-Video-Trainer 67 (a 10,000-step schedule that was over
near step 2,500 on four GPUs).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import LrSchedule
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_schedule_miscounted",
    title="The schedule was stepped the wrong number of times",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="recompute the learning rate from the configuration; no GPU needed",
)

NEAR_WHOLE = 0.03
"""How close the ratio of planned to logged length must be to a whole number (the catalogue allows 1 % at a step; lengths are logged less exactly)."""

FLAT_SHARE = 0.1
"""Share of the run that must follow the end of the schedule; ending in the last tenth is how schedules end."""

SMOOTH_POINTS = 10
"""Different values on the way down from which it is a schedule and not a fall at once."""

EARLY = 3.0
"""An event before this many times the actual warmup is one that a shortened warmup can explain."""


def examine(view: View) -> Examination:
    """Looks for a warmup or a schedule that is a whole number of times shorter than configured."""
    found = Examination(view)
    schedule, settings = view.schedule, view.settings
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    ends = _end(schedule)
    short_end = None if ends is None else _times(settings.total_steps, ends - int(schedule.steps[0]), view.every)
    warm = schedule.warmup_steps
    short_warmup = _times(settings.warmup, warm, view.every)
    if settings.total_steps is None and settings.warmup is None:
        found.missing.append("planned total and warmup steps in the configuration, to compare the logged schedule with")
        return found
    if short_end is None and short_warmup is None:
        return found.exclude("warmup and end of the schedule are where the configuration puts them")
    _counted(found, view, ends, short_end, short_warmup)
    factor = short_end or short_warmup
    if found.supporting and factor in {settings.accumulation, settings.processes}:
        what = "accumulation factor" if factor == settings.accumulation else "number of processes"
        found.set_for(weights.SUPPORT, f"{factor:g} is the {what}", "accumulation" if factor == settings.accumulation else "processes")
    found.remedy = f"Step the scheduler once per optimizer step, or multiply its lengths by {factor:g}; count skipped steps the same way everywhere."
    return found


def _counted(found: Examination, view: View, ends: int | None, short_end: int | None, short_warmup: int | None) -> None:
    schedule, settings = view.schedule, view.settings
    assert schedule is not None
    if ends is not None and short_end is not None and view.anchor >= ends - max(30 * view.every, 0.05 * view.length):
        text = f"the schedule was over at step {ends}, {short_end} times earlier than the {settings.total_steps:g} steps of the configuration"
        found.supports(weights.STRONG, text, Role.LR, ends)
    if short_warmup is not None and view.anchor - int(schedule.steps[0]) <= EARLY * schedule.warmup_steps:
        text = f"the warmup took {schedule.warmup_steps} steps, {short_warmup} times fewer than the configured {settings.warmup:g}"
        found.supports(weights.REQUIRED, text, Role.LR, int(schedule.steps[schedule.warmup_end]))


def _end(schedule: LrSchedule) -> int | None:
    """The step at which a smooth decay reached the value it kept to the end, if much of the run came after it."""
    values = schedule.values
    moving = np.flatnonzero(np.abs(values - values[-1]) > 1e-6 * schedule.peak)
    if len(moving) == 0 or values[-1] > 0.9 * schedule.peak:
        return None
    end = int(moving[-1]) + 1
    decay = values[schedule.warmup_end : end][:: max(1, end // 1000)]
    enough = len(values) - end >= max(SMOOTH_POINTS, FLAT_SHARE * len(values))
    return int(schedule.steps[end]) if enough and len(np.unique(decay)) >= SMOOTH_POINTS and values[end - 1] < 0.2 * schedule.peak else None


def _times(planned: float | None, actual: int, every: float) -> int | None:
    """How many times shorter than planned, where that is a whole number of at least two; lengths are known to one logged point."""
    if planned is None or actual <= 0 or planned < 1:
        return None
    whole = round(planned / actual)
    if whole < 2:
        return None
    return int(whole) if abs(planned / whole - actual) <= max(NEAR_WHOLE * actual, every) and actual >= 5 * every else None
