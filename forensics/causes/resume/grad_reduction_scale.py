"""Gradients are summed where they should be averaged, or scaled twice: their norm is off by a constant factor."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
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
    points = grad.points_up or 0
    if points >= 2 and grad.grew <= 1 and grad.first_factor > 0.3 * grad.factor:
        text = f"the gradient norm was {grad.factor:.3g} times its level for {points} logged steps and normal before and after"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM, grad.peak_step)
        found.supports(weights.SUPPORT, "the loss of these steps is normal: only the gradient was wrong", Role.LOSS, grad.peak_step)
    found.missing.append("gradient norms per rank, and what scaled the gradients (loss scale, accumulation, world size)")
    found.remedy = "Check what multiplies the gradients between backward and step: unscaling, accumulation, all-reduce (sum against mean)."
    return found
