"""Gradients are summed where they should be averaged, or scaled twice: their norm is off by a constant factor.

What happened
-------------
Something multiplies the gradients between backward and step: a sum instead of a mean over ranks, a missing unscaling,
a clip by a local norm. The loss is right, the gradient has the right direction and a wrong length.

How it shows in logs
--------------------
The gradient norm is 10 times its level or more for two or more logged steps, at one constant height, and normal
before and after, while the loss of these steps is normal. At a change of topology the factor is an integer such as
the data- or tensor-parallel size.

What would contradict it
------------------------
A factor below 10, or a loss that moved at the same step or earlier, excludes it. A height that grows or decays is not
a constant factor.

Looks like, but is not
----------------------
gradient_explosion_depth: grows from step to step.

sdc_transient: one step, or a decay.

grad_accum_normalisation: the factor is the accumulation, in the loss too.

metric_artifact: only the logged norm is scaled (by the loss scale, for example).

replica_desync: not visible at all.

How to confirm
--------------
Compute one step on one rank and on several and compare the gradients (R12; described, not run by this version).

Fix
---
Check everything that multiplies gradients between backward and step: unscaling, accumulation, all-reduce, clipping.
Test one against N GPUs in continuous integration.

References
----------
BLOOM tr11 (clipping missing on tensor-parallel ranks above 0). Common practice with tensor parallelism.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="grad_reduction_scale",
    title="The gradient was scaled or reduced wrongly",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.GRAD_NORM,),
    replay="one rank against several, one step (R12)",
)


def examine(view: View) -> Examination:
    """Looks for a gradient norm that is off by a large factor for several steps, then exactly normal, with the loss untouched."""
    found = Examination(view)
    grad = view.grad
    surge = view.incident.member(EventKind.GRAD_NORM_SURGE)
    if grad is None or surge is None:
        return found
    if grad.factor < signs.SURGE:
        return found.exclude("the gradient norm did not move by a large factor")
    if view.rise is not None and view.grad_lead is not None and view.grad_lead <= 0:
        return found.exclude("the loss moved at the same step: more than the gradient was affected")
    if view.rise is not None and view.grad_lead is None:
        found.contradicts(weights.AGAINST, "the loss rose within the same logged interval: more than the gradient seems affected", Role.LOSS, view.anchor)
    points = grad.points_up or 0
    if points >= 2 and grad.grew <= 1 and grad.second_factor > 0.3 * grad.factor:
        text = f"the gradient norm was {number(grad.factor)} times its level for {points} logged steps and normal before and after"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM, grad.peak_step)
        if view.rise is None:
            found.supports(weights.SUPPORT, "the loss of these steps is normal: only the gradient was wrong", Role.LOSS, grad.peak_step)
    found.missing.append("gradient norms per rank, and what scaled the gradients (loss scale, accumulation, world size)")
    found.remedy = "Check what multiplies the gradients between backward and step: unscaling, accumulation, all-reduce (sum against mean)."
    return found
