"""The sampler or the random state was not restored: what comes after the resume is composed otherwise.

What happened
-------------
After a resume the loader draws from another position, seed or mix of sources. Weights and optimizer are right; the
data of the first window are others, for instance fewer images per text.

How it shows in logs
--------------------
The loss rises within 20 logged points after a resume while the gradient norm is calm, or hardly moves. Typically it
happens at every resume and is over after about 50 steps.

What would contradict it
------------------------
No resume near excludes it. A gradient norm that stays up with the loss contradicts it. Only one of many resumes
affected: look elsewhere.

Looks like, but is not
----------------------
data_repeat_after_resume: the same batches again, with a lower loss.

resume_optimizer_lost: the gradient is upset.

resume_weights_wrong: off at the first step.

mixture_shift: without a resume.

How to confirm
--------------
Audit sampler and random states in the checkpoint (R11), and replay the window in another order (R16).

Fix
---
Save and restore the states of sampler and random generators with every checkpoint; use a stateful loader.

References
----------
IDEFICS chronicles and memos (the ratio of sources was off after each start). accelerate 2823. transgenic 59 (15 of 20
samples were wrong after a resume within an epoch).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import Attempt, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_data_or_rng_lost",
    title="The data order or random state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="audit sampler and random states (R11), reorder the window (R16)",
)


def examine(view: View) -> Examination:
    """Looks for a small event at every resume, with learning rate and gradient unaffected."""
    found = Examination(view)
    if view.resume is None:
        return found.exclude("no resume within 20 logged steps before the onset")
    if view.rise is None:
        return found
    step = view.resume.first_step if isinstance(view.resume, Attempt) else view.resume
    found.supports(weights.SUPPORT, f"the run was resumed at step {step}", Role.LOSS, step)
    if signs.gradient_calm_while_loss_away(view) or (view.grad is not None and view.grad.onset_step is None):
        found.supports(weights.SUPPORT, "the gradient norm is calm: weights and moments are right, the data are others", Role.GRAD_NORM, step)
    elif signs.gradient_upset(view):
        found.contradicts(weights.DOUBT, "the gradient norm stayed up with the loss", Role.GRAD_NORM)
    found.missing.append("batch ids, or the share of each source in the first steps after the resume")
    found.remedy = "Save the sampler's and the random generators' state with every checkpoint and restore both."
    return found
