"""The loss scale fell to its floor and gradients still overflowed: a true explosion, or broken numbers.

What happened
-------------
The scaler halves and halves, and the gradients are still infinite. Then the scale is not the reason: gradients truly
explode, activations overflow in the forward pass, or the weights are already broken.

How it shows in logs
--------------------
The loss scale falls by 2^6 or more without recovering to four times its lowest value within 200 logged points, or
reaches 1 or less. DeepSpeed stops with a message that the scale is already at its minimum. The loss often rises some
steps later.

What would contradict it
------------------------
A scale that recovers excludes it.

Looks like, but is not
----------------------
fp16_grad_overflow: halving helps.

fp16_activation_overflow: calm in float32.

lr_too_high, attention_logit_growth: the explosion behind it.

nan_in_input: one batch did it.

scale_calibration_skips: in the first steps, with no effect.

How to confirm
--------------
Replay the steps in float32 (R5). If they still explode, the cause is in the optimization; if they are calm, in
float16 activations. Find the first non-finite tensor: input, forward or gradient.

Fix
---
Do not raise the scale. Find the explosion (learning rate, attention logits, input), lower the learning rate, or train
in bf16.

References
----------
DeepSpeed loss scaler (class defaults: start 2^32, window 1,000, minimum 1). OPT-175B chronicles.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="loss_scale_collapse",
    title="The gradients overflow at any loss scale",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="replay in float32 (R5): still explodes = optimisation, calm = float16 activations",
)


def examine(view: View) -> Examination:
    """Looks for a scale that fell by 2^6 or more and did not come back."""
    found = Examination(view)
    if view.curves.get(Role.LOSS_SCALE) is None:
        found.missing.append("the loss scale of every step")
        return found
    collapse = view.incident.member(EventKind.LOSS_SCALE_COLLAPSE)
    if collapse is None:
        return found.exclude("the loss scale did not collapse")
    found.supports(weights.STRONG, collapse.text, Role.LOSS_SCALE, collapse.peak_step)
    if view.rise is not None and view.rise.onset_step >= collapse.onset_step:
        found.supports(weights.SUPPORT, f"the loss rose {view.rise.onset_step - collapse.onset_step} steps later", Role.LOSS, view.rise.onset_step)
    if signs.scale_had_jumped(view):
        found.contradicts(weights.AGAINST, "it had jumped up just before: it fell back to where it had been", Role.LOSS_SCALE, collapse.onset_step)
    if view.curves.get(Role.ATTN_LOGIT_MAX) is not None and any(i.member(EventKind.LOGIT_GROWTH) is not None for i in view.incidents):
        found.contradicts(weights.DOUBT, "the attention logits had been growing: the scale follows what overflows", Role.ATTN_LOGIT_MAX)
    if signs.lr_above_usual(view):
        found.contradicts(weights.DOUBT, "the learning rate is far above the usual: the scale follows what it blows up", Role.LR)
    if not collapse.recovered:
        found.supports(weights.HINT, "it did not recover within 200 logged steps", Role.LOSS_SCALE, collapse.peak_step)
    found.remedy = "Do not raise the scale: find the explosion (learning rate, attention logits, input), or train in bf16."
    return found
