"""From some point on a share of the labels does not belong to its inputs.

What happened
-------------
A join, a shuffle or a column mix-up separated inputs from targets for part of the stream. The model cannot learn that
part; its loss has a floor near chance.

How it shows in logs
--------------------
The loss steps to a higher floor and stays. Accuracy on the affected batches is near chance, and the gradient norm is
up modestly, 1.5 to 3 times. Losses per sample fall into two humps.

The rule needs a logged accuracy that falls by 15 % of its value or more.

What would contradict it
------------------------
Losses per sample form one hump.

Looks like, but is not
----------------------
mixture_shift: the loss comes down again as the new data are learned.

degenerate_data_pocket: ends after a fixed number of samples.

tokenizer_vocab_mismatch: wrong from the first step.

How to confirm
--------------
Compute the loss of every sample with the logged and with clean labels (R4). On an earlier healthy state the same
batches are as bad (R2).

Fix
---
Repair the join, relabel or drop the affected part, and resume from before it.

References
----------
Common practice; injected in the same form by DynFault, Jahan 2026, arXiv 2606.26492. The bounds are our own.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import deviation, logged
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="label_noise_or_shuffle",
    title="Part of the targets is wrong",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS, Role.ACCURACY),
    replay="the loss per sample with clean labels (R4); the batch is as bad at an earlier state (R2)",
)

POINTS = 40
"""Logged points on either side over which the accuracy is compared."""

FALL = 0.15
"""Share of the accuracy that must be gone: labels of a seventh of the stream."""

SURE = 4.0
"""... and by this many standard errors."""

MODEST = (1.2, 3.0)
"""Factor by which wrong labels raise the gradient norm for good (catalogue: 1.5 to 3, less where few labels are wrong)."""

_KINDS = (EventKind.LEVEL_SHIFT, EventKind.SLOW_SPIKE, EventKind.DRIFT, EventKind.DIVERGENCE)


def examine(view: View) -> Examination:
    """Looks for a loss that rises to a floor, an accuracy that falls with it, and a gradient that is modestly up."""
    found = Examination(view)
    if not logged(view, Role.ACCURACY):
        found.missing.append("the training accuracy: with wrong targets it falls towards chance")
        return _without_accuracy(found, view)
    accuracy, loss = (view.curves.get(Role.ACCURACY), view.loss) if view.event.kind in _KINDS else (None, None)
    if accuracy is None or loss is None or view.rise is None:
        return found
    at = accuracy.at(view.anchor)
    before, after = accuracy.values[max(0, at - POINTS) : at], accuracy.values[at + 3 : at + 3 + POINTS]
    if len(before) < 5 or len(after) < 5:
        found.missing.append("more values of the accuracy around the event")
        return found
    fall = float(np.median(before) - np.median(after))
    error = float(np.hypot(deviation(before) / np.sqrt(len(before)), deviation(after) / np.sqrt(len(after)))) + 1e-12
    if fall < FALL * float(np.median(before)) or fall < SURE * error:
        return found.exclude(f"the accuracy held ({np.median(before):.3g} before, {np.median(after):.3g} after)")
    found.supports(weights.SUPPORT, f"the accuracy fell from {np.median(before):.3g} to {np.median(after):.3g} with it", Role.ACCURACY, view.anchor)
    if loss.half_life is None or signs.nothing_relearned(view):
        found.supports(weights.SUPPORT, "the loss stayed up: what is wrong cannot be learned", Role.LOSS)
    else:
        found.contradicts(weights.DOUBT, f"half of the rise was gone after {loss.half_life} logged steps, as where something can be learned", Role.LOSS)
    grad = view.grad
    if grad is not None and MODEST[0] <= grad.settled <= MODEST[1]:
        found.supports(weights.SUPPORT, f"the gradient norm is {grad.settled:.2f} times its level and stays there", Role.GRAD_NORM)
    elif grad is not None and grad.factor >= 10:
        found.contradicts(weights.DOUBT, f"the gradient norm rose to {number(grad.factor)} times its level", Role.GRAD_NORM, grad.peak_step)
    found.missing.append("the loss of every sample: with part of the labels wrong it has two humps")
    found.remedy = f"Compare inputs and targets of the batches from step {view.onset} on; repair the join, or drop the part, and resume from before it."
    return found


def _without_accuracy(found: Examination, view: View) -> Examination:
    """What the loss and its gradient alone say: a new floor, above which nothing is learned, under a gradient that stays larger."""
    grad = view.grad
    if view.event.kind not in _KINDS or not signs.nothing_relearned(view):
        return found
    found.supports(weights.SUPPORT, "the loss jumped to a new floor and stayed: what is wrong cannot be learned", Role.LOSS)
    if signs.back_at_start(view):
        found.contradicts(weights.DOUBT, "the floor is where the loss stood before training", Role.LOSS)
    if grad is not None and grad.settled >= MODEST[0]:
        found.supports(weights.SUPPORT, f"the gradient norm is {grad.settled:.2f} times its level and stays there", Role.GRAD_NORM)
    elif grad is not None and grad.settled < 1:
        found.contradicts(weights.DOUBT, "the gradient norm is smaller than before", Role.GRAD_NORM)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    found.remedy = f"Compare inputs and targets of the batches from step {view.onset} on; repair the join, or drop the part, and resume from before it."
    return found
