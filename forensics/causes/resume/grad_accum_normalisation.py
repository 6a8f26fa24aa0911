"""Accumulation averages averages, or forgets to divide.

What happened
-------------
The loss of each micro-batch is averaged over its own tokens and then over micro-batches, so short ones weigh too
much; or the sum is not divided by the number of micro-batches and everything is N times too large.

How it shows in logs
--------------------
Logged loss or gradient norm differ by about the accumulation factor between two runs, versions or stretches that
differ in nothing else; or they lean with the spread of valid tokens.

What would contradict it
------------------------
Accumulation 1 and N agree within 1 % at equal tokens.

Looks like, but is not
----------------------
packing_imbalance: the same weighting fault across ranks.

grad_reduction_scale: the factor is a parallel size.

batch_size_change_unscaled: the batch itself changed.

How to confirm
--------------
One step at the same tokens with accumulation 1 and N (R12): compare loss and gradients.

Fix
---
Divide the summed loss by the global number of target tokens; upgrade a trainer that is known to be affected.

References
----------
Hugging Face blog, October 2024; transformers issues 34191, 35438 (the loss doubled at accumulation 2) and 37766.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.move import level_change
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="grad_accum_normalisation",
    title="Loss or gradients are normalised by the wrong count",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS, Role.GRAD_NORM),
    replay="one step with accumulation 1 and N at the same tokens (R12)",
)

SAME = 0.25
"""Relative difference up to which loss and gradient norm moved by the same factor: medians of a few points are no better."""

LARGE = 1.5
"""A factor below this can have many reasons."""

NEAR = 8
"""Logged points on either side that are compared: farther away training itself has moved both."""

HELD = 1.25
"""Up to this further change over the next points the factor stayed: nothing was learned anew, only the unit is another."""

WHOLE = 0.1
"""Distance from a whole number of micro-batches, relative, up to which the factor may be one."""

_KINDS = {EventKind.DROP, EventKind.LEVEL_SHIFT, EventKind.SLOW_SPIKE, EventKind.NOISE_CHANGE, EventKind.DIVERGENCE}


def examine(view: View) -> Examination:
    """Looks for a step at which loss and gradient norm change by the same factor and stay there."""
    found = Examination(view)
    if view.event.kind not in _KINDS:
        return found
    found.missing.append("the accumulation factor and the number of valid tokens of every step")
    loss, grad = view.curves.get(Role.LOSS), view.curves.get(Role.GRAD_NORM)
    if loss is None or grad is None or not loss.log or not grad.log:
        return found
    by_loss, by_grad = level_change(loss, view.anchor, NEAR), level_change(grad, view.anchor, NEAR)
    if by_loss is None or by_grad is None or max(by_loss, 1 / by_loss) < LARGE:
        return found
    if abs(by_grad / by_loss - 1) > SAME:
        return found.exclude(f"the loss changed by x{by_loss:.2f} but the gradient norm by x{by_grad:.2f}: not one factor for both")
    later = level_change(loss, view.anchor + round(2 * NEAR * view.every), NEAR)
    text = f"loss and gradient norm changed by the same factor at one step (x{by_loss:.2f} and x{by_grad:.2f})"
    if later is not None and 1 / HELD <= later <= HELD and not view.event.recovered and _whole(by_loss):
        found.supports(weights.STRONG, text + " and stayed", Role.LOSS, view.anchor)
    else:
        found.supports(weights.SUPPORT, text, Role.LOSS, view.anchor)
    if view.rise is not None and view.event.recovered:
        found.contradicts(weights.DOUBT, "the loss came back: a wrong divisor stays", Role.LOSS)
    steps = view.settings.accumulation
    if steps is not None and steps >= 2 and abs(max(by_loss, 1 / by_loss) / steps - 1) <= SAME:
        found.set_for(weights.SUPPORT, f"the factor is that of the accumulation, {steps:g}", "accumulation")
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    found.remedy = "Divide the summed loss by the global number of target tokens, once; check what changed at this step in the loss or its averaging."
    return found


def _whole(factor: float) -> bool:
    """A divisor that is left out or used twice is a whole number."""
    size = max(factor, 1 / factor)
    return abs(size / max(round(size), 2) - 1) <= WHOLE
