"""The mask of the loss changed or is wrong: few or no targets are counted.

What happened
-------------
The mask decides which targets count. If it hides too many, the loss is averaged over few tokens and turns noisy; if
it hides all, the mean over nothing is NaN; if it counts padding or shifts the targets, the loss is about the wrong
thing.

How it shows in logs
--------------------
The loss turns noisier at one step while its level stays where it was, and the gradient norm settles above 1.4 times
its level, because fewer targets are averaged. Or single NaN values appear and heal with the next batch, without any
rise before them. Also typical, but not examined here: a loss of exactly 0, an initial loss more than 10 % away from
ln(vocabulary size), or a fall by an implausible amount within 200 steps. The number of counted tokens per step would
show it directly.

What would contradict it
------------------------
A batch size that changed at the same step explains the noise better. A loss that rose before the NaN points
elsewhere.

Looks like, but is not
----------------------
batch_size_change_unscaled: noise and gradient change with the batch.

nan_in_input: a NaN that is in the data.

packing_imbalance: counts vary, the mask is right.

target_leak_or_format: too good, with full counts.

How to confirm
--------------
Compute the loss per token of the step and decode inputs and labels side by side (R4).

Fix
---
Count unmasked targets per batch and log the count; divide the summed loss by it, return 0 where it is 0, and check
the shift between inputs and labels once by hand.

References
----------
PyTorch issues 70348 and 116349 (the mean over ignored targets only is NaN), OLMo-core 657, NeMo Automodel 3796. The
ln(vocabulary) test is our own.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.move import level_change
from forensics.correlate.trends import Prepared
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="loss_mask_error",
    title="The loss mask is wrong",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="loss per token and decoded labels of the step (R4)",
)

MORE_GRADIENT = 1.4
"""Fewer counted tokens make the gradient noisier and larger: from this factor on it shows."""


FEWER = 0.7
"""Factor from which on a fall at once is one of the counted targets; smaller falls are how training goes on."""

MORE_NOISE, AROUND = 1.3, 40
"""Growth of the relative noise that fewer targets bring, over so many logged points on either side."""

NEAR = 8
"""Logged points on either side of a fall that are compared."""


def examine(view: View) -> Examination:
    """Looks for a loss that turned noisier at one step, or fell with its gradient, while the batch stayed, or a NaN from an empty mask."""
    found = Examination(view)
    if view.event.kind is EventKind.DROP:
        return _fall(found, view)
    noisier = view.incident.member(EventKind.NOISE_CHANGE) if view.event.kind is EventKind.NOISE_CHANGE else None
    broken = view.incident.member(EventKind.NON_FINITE)
    fewer = signs.fewer_averaged(view)
    if noisier is None and broken is None and fewer is None:
        return found
    valid = view.curves.get(Role.TOK_VALID)
    if valid is None:
        found.missing.append("the number of counted target tokens of every step")
    if noisier is not None:
        _noise(found, view, noisier.text, noisier.onset_step)
    elif fewer is not None:
        _noise(found, view, f"the noise of the loss grew {fewer:.1f} times", view.anchor)
    elif broken is not None and view.rise is None and broken.recovered:
        found.supports(weights.SUPPORT, f"{broken.text}: the mean over no token is NaN, and heals with the next batch", Role.LOSS, broken.onset_step)
    found.remedy = "Count the unmasked targets of every batch; divide the summed loss by that count, and return 0 where it is 0."
    return found


def _fall(found: Examination, view: View) -> Examination:
    """Masked targets that are still counted lower the loss by their share, and the gradient by less: what is left of it is noisier."""
    loss, grad = view.curves.get(Role.LOSS), view.curves.get(Role.GRAD_NORM)
    if loss is None or not loss.log:
        return found
    by_loss = level_change(loss, view.anchor, NEAR)
    if by_loss is None or by_loss > FEWER:
        return found
    found.supports(weights.SUPPORT, f"the loss fell to {by_loss:.2f} of its level within a step: fewer targets make up the same mean", Role.LOSS, view.anchor)
    by_grad = level_change(grad, view.anchor, NEAR) if grad is not None and grad.log else None
    if by_grad is None:
        found.missing.append("the gradient norm: under masked targets it falls too, by less than the loss")
    elif by_loss * 1.25 < by_grad < 1:
        weight = weights.REQUIRED if _noisier(loss, view.anchor) else weights.SUPPORT
        found.supports(weight, f"the gradient norm fell with it, to {by_grad:.2f}: by less than the loss, as of fewer targets", Role.GRAD_NORM)
    elif by_grad >= 1.2:
        found.contradicts(weights.AGAINST, f"the gradient norm rose, x{by_grad:.2f}", Role.GRAD_NORM)
    found.remedy = "Count the unmasked targets of every batch; divide the summed loss by that count, and return 0 where it is 0."
    return found


def _noisier(loss: Prepared, step: int) -> bool:
    """The relative noise grew: a mean over fewer targets varies more."""
    at = loss.at(step)
    before, after = np.diff(loss.u[max(0, at - AROUND) : at]), np.diff(loss.u[at : at + AROUND])
    return min(len(before), len(after)) >= 8 and float(np.median(np.abs(after))) >= MORE_NOISE * float(np.median(np.abs(before)))


def _noise(found: Examination, view: View, text: str, step: int) -> None:
    change = view.incident.member(EventKind.BATCH_SIZE_CHANGE)
    if change is not None:
        found.contradicts(weights.AGAINST, f"the batch size changed: {change.text}", Role.BATCH_SIZE, change.onset_step)
    found.supports(weights.SUPPORT, text, Role.LOSS, step)
    if view.rise is None:
        found.supports(weights.HINT, "the level of the loss stayed where it was", Role.LOSS, step)
    grad = view.grad
    if grad is not None and grad.lasting >= MORE_GRADIENT:
        found.supports(weights.REQUIRED, f"the gradient norm rose to x{grad.lasting:.2f} and stayed: fewer targets are averaged", Role.GRAD_NORM, step)
