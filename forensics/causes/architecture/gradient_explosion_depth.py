"""Gradients grow from step to step, or through the depth of the network.

What happened
-------------
Backpropagation multiplies the Jacobians of all layers. Where their product is above 1, gradients grow with depth;
where an update makes it larger still, they grow from step to step, geometrically, until the loss follows.

How it shows in logs
--------------------
The gradient norm reaches 10 times its level, and at least doubles at each of three or more successive logged steps
before its peak. It leaves its level before the loss. In a public 176B run it grew by 3.9, 2.5, 6.6, 9.1 and 6.6 at
five steps in a row, four of them before the loss peaked, with clipping at 1.0. A divergence or NaN with a gradient
that grew along counts too.

What would contradict it
------------------------
No surge of 10 times excludes it. One step only, together with the loss, contradicts it; so does a jump of the
learning rate, which explains the growth.

Looks like, but is not
----------------------
bad_batch_outlier, sdc_transient: one step.

adam_v_stale: the update, not the gradient, is too large.

embedding_grad_surge: one group carries it all.

grad_clip_missing: why the surge was let through.

How to confirm
--------------
Replay with a clip, global and per tensor (R7). Measure gradients per layer: early layers are largest. Change one
component at a time (R14) to find where it starts.

Fix
---
Clip at 1.0; check initialisation, residual scaling and normalisation of the deepest blocks. Restart from before the
growth and skip the batches if the state is otherwise healthy.

References
----------
BLOOM-176B logs, steps 31,214 to 31,219. Common practice; absolute alarms such as "norm above 1,000" mean nothing
across runs.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="gradient_explosion_depth",
    title="Gradients multiply on their way through the layers",
    family="architecture",
    part=Part.TRIGGER,
    needs=(Role.GRAD_NORM,),
    replay="replay with a clip (R7) and by component (R14)",
)

GROWTH_STEPS = 3
"""Successive steps of at least doubling that are an explosion rather than a surge (published case: five)."""


def examine(view: View) -> Examination:
    """Looks for geometric growth of the gradient norm up to the peak, or a gradient that leads the loss by steps."""
    found = Examination(view)
    grad = view.grad
    if grad is None:
        found.missing.append("the gradient norm before clipping")
        return found
    if grad.onset_step is None or grad.factor < signs.SURGE:
        return found.exclude("the gradient norm did not surge")
    if grad.grew >= GROWTH_STEPS:
        text = f"the gradient norm at least doubled at each of {grad.grew} successive logged steps"
        found.supports(weights.STRONG, text, Role.GRAD_NORM, grad.peak_step)
    elif view.event.kind in {EventKind.DIVERGENCE, EventKind.NON_FINITE} and view.rise is not None:
        text = f"the gradient norm grew with the loss to {number(grad.factor)} times its level"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM, grad.peak_step)
    else:
        found.supports(weights.SUPPORT, f"the gradient norm reached {number(grad.factor)} times its level", Role.GRAD_NORM, grad.peak_step)
    if signs.precursor(view):
        found.supports(weights.SUPPORT, f"it left its level {view.grad_lead} steps before the loss", Role.GRAD_NORM, grad.onset_step)
    elif view.grad_lead == 0 and signs.brief(view):
        found.contradicts(weights.AGAINST, "the surge was one step, together with the loss", Role.GRAD_NORM, grad.peak_step)
    if view.rise is not None and signs.lr_above_usual(view):
        found.contradicts(weights.DOUBT, "at this learning rate gradients follow a loss that diverges", Role.LR, view.anchor)
    if view.jump is not None:
        found.contradicts(weights.DOUBT, "the learning rate had just jumped", Role.LR, view.jump.step)
    found.missing.append("gradient norms per layer: early layers grow most")
    found.remedy = "Clip at 1.0; check initialisation, residual scaling and normalisation of the deepest blocks."
    return found
