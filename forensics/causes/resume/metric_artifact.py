"""The log, not the training: steps written twice, units that changed, curves that were merged.

What happened
-------------
A run was set back and did some steps again, two processes wrote into one log, or a quantity changed its meaning
(smoothing, interval means, a gradient norm times the loss scale). The curve shows an event that the training never
had, or hides one.

How it shows in logs
--------------------
Steps that were written twice: the later pass replaces the earlier one here, and both are kept. A new process that
begins to write near the onset is a hint. A gradient norm that follows the loss scale is in scaled units.

What would contradict it
------------------------
The loss shows the same event in every source.

Looks like, but is not
----------------------
resume_weights_wrong, resume_optimizer_lost: the resume is real, and so is the event.

bf16_loss_quantisation: rounding of the logged loss.

bad_batch_outlier: one real step.

sdc_transient: a real surge of one step.

How to confirm
--------------
Read the raw logs again; no replay is needed. Compare with a second logger if there is one.

Fix
---
Keep the later value of each step when plotting, log a run id per attempt, and divide the gradient norm by the loss
scale where it was logged scaled.

References
----------
ML engineering notes (public book) on rollback and rewind in W&B. The scale check is our own, on public float16 logs.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Attempt, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="metric_artifact",
    title="An artefact of logging",
    family="resume",
    part=Part.TRIGGER,
    replay="none: read the raw logs again",
)


def examine(view: View) -> Examination:
    """Looks for steps that were written twice at the onset."""
    found = Examination(view)
    restart = next((m for m in view.incident.members if m.kind is EventKind.RESTART and "written twice" in m.text), None)
    if restart is None:
        if isinstance(view.resume, Attempt):
            found.supports(weights.HINT, f"another process began to write at step {view.resume.first_step}", Role.LOSS, view.resume.first_step)
        return found
    found.supports(weights.STRONG, restart.text, Role.LOSS, restart.onset_step)
    if view.rise is None:
        found.supports(weights.HINT, "the loss itself shows no event there", Role.LOSS, restart.onset_step)
    reset = view.checkpoints.count_reset()
    if reset is not None and view.checkpoints.restart is not None:
        found.contradicts(weights.AGAINST, f"the resume was real, and not whole: the optimizer's step count is {reset.count} at step {reset.after.step}")
    if view.checkpoints.rotten_when_loaded():
        found.contradicts(weights.AGAINST, "the checkpoint that was loaded holds rotten numbers: the second pass is another run of the model")
    found.remedy = "Read the two passes apart (this tool does); when plotting, keep the later value of each step, and log a run id per attempt."
    return found
