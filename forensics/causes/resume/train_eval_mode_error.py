"""After an evaluation the model trains on in evaluation mode, or with averaged weights.

What happened
-------------
eval() was not undone, or the weights were swapped for their average and not swapped back. Dropout is off, BatchNorm
uses running statistics, or training continues from other weights.

How it shows in logs
--------------------
A shift of the loss that begins one step after an evaluation and repeats with the evaluation interval; the noise level
changes with it.

The rule asks for at least two events right after evaluations, more than chance puts there (below 1 %).

What would contradict it
------------------------
The shift is not tied to evaluations.

Looks like, but is not
----------------------
data_order_correlated: the period is that of the data.

epoch_boundary_step: the period is an epoch.

norm_layer_instability: evaluation suffers, training does not.

How to confirm
--------------
Replay the steps after an evaluation in training mode (R14) and compare with the log.

Fix
---
Set the mode explicitly at the start of every training step; restore weights in a finally block.

References
----------
Our own rule.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.batches import at_least
from forensics.correlate.patterns import Thing
from forensics.model import EventKind, Part, Severity
from forensics.model.words import chance
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="train_eval_mode_error",
    title="The model was left in the wrong mode",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.VAL_LOSS, Role.LOSS),
    replay="replay with dropout and normalisation in training mode (R14)",
)

SPARSE = 10.0
"""Logged losses per evaluation below which every event would stand next to an evaluation."""

CERTAIN = 0.01
"""Chance below which several events right after evaluations are no coincidence."""

_KINDS = (EventKind.LEVEL_SHIFT, EventKind.DROP, EventKind.NOISE_CHANGE, EventKind.SPIKE, EventKind.SLOW_SPIKE)


def examine(view: View) -> Examination:
    """Looks for events that begin right after evaluations, more often than chance puts them there."""
    found = Examination(view)
    regular = view.pattern(Thing.INTERVAL)
    if regular is not None and view.event.kind in _KINDS and "eval" in str(regular.value):
        found.supports(weights.REQUIRED, regular.text, Role.LOSS, view.onset, regular.value)
    held_out, loss = view.curves.get(Role.VAL_LOSS), view.curves.get(Role.LOSS)
    if held_out is None or loss is None or len(held_out) < 3:
        found.missing.append("the steps of evaluations (a held-out loss)")
        return found
    if view.event.kind not in _KINDS or held_out.every < SPARSE * loss.every:
        return found
    if not _follows(held_out.steps, view.onset, loss.every):
        return found.exclude("the event does not begin right after an evaluation")
    alarms = {i.event.onset_step for i in view.incidents if i.event.severity is not Severity.INFO and i.event.kind in _KINDS} | {view.onset}
    after = sorted(s for s in alarms if _follows(held_out.steps, s, loss.every))
    p = at_least(len(after), len(loss), 2 * len(held_out), len(alarms))
    if len(after) < 2 or p >= CERTAIN:
        return found
    steps = ", ".join(str(s) for s in after[:6])
    text = f"{len(after)} of {len(alarms)} events begin right after an evaluation (steps {steps}; chance of that: {chance(p)})"
    found.supports(weights.STRONG, text, Role.VAL_LOSS, view.onset)
    if view.incident.member(EventKind.NOISE_CHANGE) is not None:
        found.supports(weights.SUPPORT, "the noise of the loss changed with it, as where dropout goes on or off", Role.LOSS, view.onset)
    found.remedy = "Set the mode at the start of every training step, and restore swapped weights in a finally block."
    return found


def _follows(evaluations: np.ndarray[tuple[int], np.dtype[np.int64]], step: int, every: float) -> bool:
    """The step is the first or second logged one after an evaluation."""
    i = int(np.searchsorted(evaluations, step)) - 1
    return i >= 0 and step - int(evaluations[i]) <= 2 * every
