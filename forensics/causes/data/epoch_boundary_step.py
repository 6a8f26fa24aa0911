"""Data that was seen once is partly memorised, so the loss steps when a new epoch begins. Usually expected.

What happened
-------------
At the start of an epoch the model meets samples it has already trained on and predicts them better. Where the order
within an epoch is sorted, the step can also go up.

How it shows in logs
--------------------
A lasting drop of the training loss within 1 % of a multiple of the data set's size, counted in samples. The
validation loss is flat or gets worse. The gradient norm and the learning rate do nothing.

What would contradict it
------------------------
The position does not match the length of an epoch, or the validation loss improves with it.

Looks like, but is not
----------------------
data_repeat_after_resume: the drop starts at a resume, not at an epoch.

target_leak_or_format: the loss is low from the start.

loss_mask_error: the noise changes with the level.

overfitting: what follows when this goes on for many epochs.

How to confirm
--------------
Compute the loss of seen and of unseen batches on the same checkpoint (R4). A gap that equals the step confirms it.

Fix
---
Nothing, if the run was planned for several epochs. Otherwise fewer epochs, a lower learning rate, and an eye on the
validation loss.

References
----------
fast.ai 2023, "Can LLMs learn from a single example?", and a W&B report on the same effect.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Absent, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="epoch_boundary_step",
    title="The loss steps down at the start of an epoch",
    family="data",
    part=Part.AMPLIFIER,
    needs=(Role.EPOCH,),
    replay="the loss of seen and of unseen batches on one checkpoint (R4)",
    info=(EventKind.DROP,),
)


def examine(view: View) -> Examination:
    """Looks for a drop of the loss at the step where the logged epoch turns."""
    found = Examination(view)
    if view.event.kind not in {EventKind.DROP, EventKind.RESTART}:
        return found
    signal = view.run.signal(Role.EPOCH)
    if isinstance(signal, Absent):
        found.missing.append("the epoch of every step, or the size of the data set in samples")
        return found
    curve = signal.curve(view.incident.attempts)
    turns = curve.steps[np.flatnonzero(np.diff(np.floor(curve.values + 1e-9)) > 0) + 1]
    near = turns[np.abs(turns - view.onset) <= 2 * view.every]
    if len(near) == 0:
        return found.exclude("no epoch begins at this step")
    found.supports(weights.STRONG, f"an epoch begins at step {int(near[0])}", Role.EPOCH, int(near[0]))
    found.remedy = "Nothing, if several epochs were planned; otherwise fewer epochs, and an eye on the held-out loss."
    return found
