"""The learning rate fell to nothing: the run computes, but does not learn.

What happened
-------------
The schedule ended early, a parameter group lost its rate, or a bug set it to zero. Every step after that costs the
same and changes nothing.

How it shows in logs
--------------------
The learning rate falls abruptly to under a thousandth of its maximum and stays there to the end, outside the last
tenth of the run. Gradient norms stay alive and the loss stays where it was. Where logged, an update-to-weight ratio
under 1e-4 agrees.

What would contradict it
------------------------
A learning rate that never fell to nothing outside the tail, or did so at another step, excludes it. A normal
update-to-weight ratio contradicts it.

Looks like, but is not
----------------------
lr_schedule_miscounted: the planned curve, only compressed.

optimizer_not_stepping: the rate is fine, the weights do not move.

bf16_update_stall: updates are rounded away, worst in the tail.

adam_eps_too_large: only some layers stall.

grad_clip_chronic: every step is cut short.

How to confirm
--------------
Replay from the step of the fall with ten times the rate, or with the old one (R6): the loss falls again.

Fix
---
Find what set the rate to zero (length of the scheduler, rate of a group, freeze flags) and resume from that step: all
later steps are lost.

References
----------
Our own rule. Reported: the "slow convergence" class of AutoTrainer.

"""

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
