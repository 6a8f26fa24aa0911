"""Scaled gradients exceed what float16 can hold."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="fp16_grad_overflow",
    title="float16 gradients overflowed",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="finite at a lower scale (R10), calm in float32 (R5)",
)


def examine(view: View) -> Examination:
    """Looks for a burst of loss-scale halvings."""
    found = Examination(view)
    if view.curves.get(Role.LOSS_SCALE) is None:
        found.missing.append("the loss scale of every step")
        return found
    burst = view.incident.member(EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE)
    if burst is None:
        return found.exclude("the loss scale did not fall in a burst")
    found.supports(weights.STRONG, burst.text, Role.LOSS_SCALE, burst.peak_step)
    if view.grad is not None and view.grad.bad:
        text = f"the gradient norm was not finite at {view.grad.bad} logged steps: they were skipped"
        found.supports(weights.SUPPORT, text, Role.GRAD_NORM, burst.onset_step)
    if burst.kind is EventKind.LOSS_SCALE_COLLAPSE:
        found.contradicts(weights.DOUBT, "halving did not help for long: more than the scale was wrong", Role.LOSS_SCALE, burst.peak_step)
    if view.rise is not None and view.rise.onset_step < burst.onset_step:
        found.contradicts(weights.DOUBT, "the loss rose before the scale fell", Role.LOSS, view.rise.onset_step)
    found.remedy = "Find what grew at this step before touching the scaler; then bf16, or a lower start (2^16) with growth every 2000 clean steps."
    return found
