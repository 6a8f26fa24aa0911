"""Scaled gradients exceed what float16 can hold.

What happened
-------------
float16 ends at 65,504. Gradients times the loss scale pass it, the scaler finds infinities, skips the step and halves
the scale. One halving per growth interval is how dynamic scaling works; a burst means that something made gradients
grow.

How it shows in logs
--------------------
At least three halvings of the loss scale close together (gaps of at most 50 logged points). The gradient norm is
infinite or NaN at those steps, while the loss itself is finite. Skipped steps make up more than 1 % of 500.

What would contradict it
------------------------
A loss scale that did not fall in a burst excludes it. A fall of 2^6 or more that does not come back says that the
scale was not the problem. A loss that rose before the scale fell says that the overflow followed something else.

Looks like, but is not
----------------------
scale_calibration_skips: the search at the start, or one skip per interval.

loss_scale_collapse: halving does not help.

fp16_activation_overflow: the forward pass overflows, at any scale.

nan_in_input: one batch, in any precision.

resume_scaler_reset: a jump of the scale at a resume first.

How to confirm
--------------
Replay with a lower static scale (R10): finite. In float32 (R5): calm.

Fix
---
Find what grew at this step before touching the scaler. Then bf16, or dynamic scaling from 2^16 with growth after
2,000 clean steps and a cap at 2^15 to 2^16. Raising the scale only adds overflow.

References
----------
PyTorch GradScaler (start 65,536, x2 after 2,000 clean steps, x0.5 on overflow). OPT-175B chronicles, note at 27 %.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
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
    if signs.scale_had_jumped(view):
        found.contradicts(weights.DOUBT, "the scale had jumped up just before: it was the scale that grew, not the gradient", Role.LOSS_SCALE, burst.onset_step)
    if view.rise is not None and view.rise.onset_step < burst.onset_step:
        found.contradicts(weights.DOUBT, "the loss rose before the scale fell", Role.LOSS, view.rise.onset_step)
    found.remedy = "Find what grew at this step before touching the scaler; then bf16, or a lower start (2^16) with growth every 2000 clean steps."
    return found
