"""The data started again: batches that were already seen are trained on once more.

What happened
-------------
The sampler's position was not saved or not restored. The loader starts at its beginning, the model sees known
samples, and after the replayed stretch it steps back to unseen ones.

How it shows in logs
--------------------
Batch ids begin again in the same order (at least 10 in a row) while the steps go on, and no epoch boundary explains
it. The loss is lower on the repeated data, and steps up when they end.

What would contradict it
------------------------
Batch ids that continue exclude it.

Looks like, but is not
----------------------
epoch_boundary_step: the same at the end of an epoch, planned.

resume_data_or_rng_lost: other data after every resume, not the same again.

worker_rng_duplicate: repeats across ranks within one step.

mixture_shift: ids go on, content changes.

How to confirm
--------------
Compute the loss of replayed and of unseen batches on the same checkpoint (R4): the replayed ones are lower.

Fix
---
Save and restore the state of the sampler, or skip the consumed samples when resuming.

References
----------
ML engineering notes (public book; a Llama-2 variant; Lightning issue 18780). nanoGPT 467, accelerate 2823 and 4071.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="data_repeat_after_resume",
    title="The data loader started again",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.BATCH_ID,),
    replay="the loss of replayed batches is lower than that of unseen ones (R4)",
)


def examine(view: View) -> Examination:
    """Looks for batch ids that begin again while the steps go on."""
    found = Examination(view)
    if view.curves.get(Role.BATCH_ID) is None:
        found.missing.append("the batch ids of every step")
        return found
    again = next((m for m in view.incident.members if m.kind is EventKind.RESTART and m.signal == view.curves.get(Role.BATCH_ID).name), None)  # type: ignore[union-attr]
    if again is None:
        return found.exclude("the batch ids do not begin again at this event")
    found.supports(weights.STRONG, again.text, Role.BATCH_ID, again.onset_step)
    if view.loss is not None and view.loss.settled < 1 and view.loss.settled_z < -3:
        found.supports(weights.HINT, "the loss is lower on the repeated data", Role.LOSS)
    found.missing.append("the length of an epoch, to tell a lost sampler state from the start of an epoch")
    found.remedy = "Save and restore the sampler's state, or skip the samples that were consumed, when resuming."
    return found
