"""The run was resumed and the learning-rate schedule began again.

What happened
-------------
The scheduler's state was not saved, not loaded, or overwritten. The schedule starts at step 0 or at a wrong offset: a
second warmup, a jump to the peak, a wrong point of the decay.

How it shows in logs
--------------------
The learning rate rises by 1.2 times or more at a resume, often as a new warmup over three or more logged points.
Without any mark of a resume a new ramp still points here, with less weight.

What would contradict it
------------------------
A continuous learning rate excludes it. No visible resume at the change speaks against it.

Looks like, but is not
----------------------
lr_rewarm_or_jump: the general case, with or without a resume.

resume_optimizer_lost: the rate is continuous.

config_edit: the schedule was changed on purpose.

lr_schedule_miscounted: wrong from the beginning.

How to confirm
--------------
Audit the scheduler in the checkpoint against the logged learning rate (R11).

Fix
---
Restore the scheduler, and assert at load that its learning rate equals the last logged one.

References
----------
IDEFICS chronicles, experiments 9 and 10 (a stray state file made the loader skip the scheduler; the rate was warmed
up until the run blew up). PyTorch issue 60265, yolov5 292, the_well 63.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.checkpoint_evidence import CheckpointFact
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_scheduler_lost",
    title="The scheduler's state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="audit the scheduler's state in the checkpoint (R11)",
    info=(EventKind.LR_ANOMALY,),
)


FAR = 1.2
"""Factor by which the rate after a resume exceeds the saved one when it was not restored (catalogue: 1.2)."""


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
    elif view.event.severity is Severity.INFO:
        return found
    else:
        found.missing.append("marks of a resume: wall times, process starts")
        found.contradicts(weights.DOUBT, "no resume is visible at the change", Role.LR, jump.step)
    held = view.checkpoints.lr_in_checkpoint()
    if held is not None and view.checkpoints.loaded is not None and jump.after > FAR * held:
        text = f"the checkpoint that was loaded holds a learning rate of {held:.4g}: it was not restored"
        found.shows(weights.REQUIRED, CheckpointFact(text, view.checkpoints.loaded.step, view.checkpoints.loaded.checkpoint.path, held))
    if jump.ramp >= 3:
        found.supports(weights.SUPPORT, f"it was warmed up again over {jump.ramp} logged steps", Role.LR, jump.step)
    found.remedy = "Restore the scheduler and assert that the learning rate equals the last logged one when loading."
    return found
