"""The data started again: batches that were already seen are trained on once more."""

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
