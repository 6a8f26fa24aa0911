"""The run was resumed and the learning-rate schedule began again."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_scheduler_lost",
    title="The scheduler's state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="audit the scheduler's state in the checkpoint (R11)",
)


def examine(view: View) -> Examination:
    """Looks for a jump of the learning rate at a resume, or a new warmup that only a restarted schedule explains."""
    found = Examination(view)
    if view.schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    jump = view.jump
    if jump is None:
        return found.exclude("the learning rate is continuous")
    if view.resume is not None:
        step = view.resume if isinstance(view.resume, int) else view.resume.first_step
        found.supports(weights.REQUIRED, f"the learning rate changed at the resume of step {step}", Role.LR, step)
    else:
        found.missing.append("marks of a resume: wall times, process starts")
        found.contradicts(weights.DOUBT, "no resume is visible at the change", Role.LR, jump.step)
    if jump.ramp >= 3:
        found.supports(weights.SUPPORT, f"it was warmed up again over {jump.ramp} logged steps", Role.LR, jump.step)
    found.remedy = "Restore the scheduler and assert that the learning rate equals the last logged one when loading."
    return found
