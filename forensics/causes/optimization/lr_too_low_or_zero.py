"""The learning rate fell to nothing: the run computes, but does not learn."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_too_low_or_zero",
    title="The learning rate is zero or too low to learn",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="replay with ten times the learning rate (R6)",
)


def examine(view: View) -> Examination:
    """Looks for a learning rate that fell to nothing outside the tail of the run."""
    found = Examination(view)
    schedule = view.schedule
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    if schedule.zero_from is None:
        return found.exclude("the learning rate never fell to zero outside the tail of the run")
    step = int(schedule.steps[schedule.zero_from])
    if abs(step - view.onset) > max(30 * view.every, 0.05 * view.length):
        return found.exclude(f"the learning rate fell to zero at step {step}, not at this event")
    left = int(schedule.steps[-1]) - step
    found.supports(weights.STRONG, f"the learning rate fell to {schedule.values[schedule.zero_from]:.3g} at step {step}", Role.LR, step)
    found.supports(weights.SUPPORT, f"{left} more steps were computed at that learning rate", Role.LR, int(schedule.steps[-1]))
    if view.loss is not None and abs(view.loss.settled_z) < 4:
        found.supports(weights.HINT, "the loss stayed where it was", Role.LOSS)
    found.remedy = (
        f"Everything after step {step} is lost: find what set the learning rate to zero (scheduler length, a group's rate) "
        f"and resume from step {step}."
    )
    return found
