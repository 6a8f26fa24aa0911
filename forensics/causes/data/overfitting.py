"""The training loss goes on falling while the validation loss rises.

What happened
-------------
The model has more capacity or more epochs than the data can feed, and learns its samples instead of their law.

How it shows in logs
--------------------
The validation loss has its minimum earlier, then drifts up by 3 sds or more while the training loss still falls.
There is no sharp step: the event stands at the minimum.

What would contradict it
------------------------
The gap between training and validation loss is stable.

Looks like, but is not
----------------------
input_scale_mismatch and norm_layer_instability: a gap from the first evaluation on.

target_leak_or_format: the training loss is implausibly low.

data_order_correlated: the training loss wanders, the validation loss is flat.

How to confirm
--------------
Evaluate saved checkpoints on both sets. No replay is needed.

Fix
---
Stop at the minimum of the validation loss, more weight decay or dropout, fewer epochs, more data.

References
----------
DynFault, Jahan 2026, arXiv 2606.26492 (its task of train/validation mismatch).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import logged
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="overfitting",
    title="The model memorises the training data",
    family="data",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS, Role.VAL_LOSS),
    replay="none: compare training and validation loss",
)

AGAIN = 1.0
"""Epochs after which samples are seen again."""


def examine(view: View) -> Examination:
    """Looks for a held-out loss that rose after its minimum while the training loss went on falling."""
    found = Examination(view)
    if not logged(view, Role.VAL_LOSS):
        found.missing.append("a held-out loss, evaluated at least eight times")
        return found
    event = view.incident.member(EventKind.OVERFITTING)
    if event is None:
        return found
    found.supports(weights.STRONG, event.text, Role.VAL_LOSS, event.onset_step, event.baseline)
    epoch = view.curves.get(Role.EPOCH)
    if epoch is not None and len(epoch):
        seen = float(epoch.values[min(epoch.at(event.onset_step), len(epoch) - 1)] - epoch.values[0])
        if seen >= AGAIN:
            found.supports(weights.HINT, f"the minimum lies in epoch {seen + 1:.1f}: the samples have been seen before", Role.EPOCH, event.onset_step)
    found.remedy = f"Go back to the checkpoint nearest step {event.onset_step}; then fewer epochs, more weight decay or dropout, or more data."
    return found
