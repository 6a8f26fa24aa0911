"""The run was resumed without the optimizer's state.

What happened
-------------
Weights were restored, moments or the step count were not. Adam starts with empty moments: its first update has full
length in every coordinate, about lr x sign(gradient), and the weights are thrown off.

How it shows in logs
--------------------
A rise of the loss within 20 logged points after a resume (a new attempt, or a pause over 20 usual steps). The first
losses after the resume are right, then the loss rises; gradient norm normal at first, learning rate continuous.

What would contradict it
------------------------
No resume near excludes it. A loss that was off at the first step, before any update, contradicts it.

Looks like, but is not
----------------------
resume_weights_wrong: the first loss is already off.

resume_scheduler_lost: the learning rate jumps at the resume.

resume_data_or_rng_lost: the gradient is calm, and it happens at every resume.

config_edit: a setting changed with the restart.

lr_warmup_missing: the same at the start of a run.

How to confirm
--------------
Audit the checkpoint (R11): step count 0, empty or much smaller second moments. With the state loaded the replay is
calm.

Fix
---
Save and load all of it. If it is lost: hold the learning rate at 0 for 5/(1 - beta2) steps while the moments fill, or
re-warm over 100 to 500 steps.

References
----------
BigScience tr8b (an option silently ignored; the step of a group not saved). Lightning issue 10766, NeMo Automodel
763.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_optimizer_lost",
    title="The optimizer's state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="audit the optimizer's state in the checkpoint (R11): with it loaded there is no event",
)


def examine(view: View) -> Examination:
    """Looks for a rise within 20 logged steps of a resume, with a first loss that was still right."""
    found = Examination(view)
    if view.resume is None:
        return found.exclude("no resume within 20 logged steps before the onset")
    if view.rise is None:
        return found
    step = view.resume if isinstance(view.resume, int) else view.resume.first_step
    found.supports(weights.REQUIRED, f"the run was resumed at step {step}, {view.anchor - step} steps before the onset", Role.LOSS, step)
    if view.anchor > step:
        found.supports(weights.SUPPORT, "the loss was still normal at the first steps after the resume, then rose: the weights were right", Role.LOSS, step)
    else:
        found.contradicts(weights.AGAINST, "the loss was already off at the first step after the resume, before any update", Role.LOSS, step)
    if signs.lr_steady(view):
        found.supports(weights.HINT, "the learning rate is continuous across the resume", Role.LR, step)
    found.missing.append("the optimizer's step count and second moments in the checkpoint")
    found.remedy = "Load the optimizer's state; if it is lost, hold the learning rate at 0 for 5/(1-beta2) steps, or re-warm over 100 to 500."
    return found
