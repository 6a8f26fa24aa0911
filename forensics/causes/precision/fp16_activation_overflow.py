"""The forward pass leaves the range of float16, whatever the loss scale is.

What happened
-------------
Products such as attention scores, the cube inside GeLU, or logits exceed 65,504 in the forward pass. Halving the loss
scale does not help, because the scale only touches the backward pass. A softmax without subtraction of its maximum
can also give a finite loss and a broken gradient.

How it shows in logs
--------------------
The first non-finite tensor is in the forward pass, the largest activation was above 3e4 before it, and the loss scale
halves down to its floor without effect.

What would contradict it
------------------------
Only gradients are non-finite, and a lower scale makes them finite. The run is in bf16 or float32.

Looks like, but is not
----------------------
fp16_grad_overflow: lower scales help.

nan_in_input: one batch, any precision.

attention_logit_growth: the slow growth that ends here in float16 runs.

How to confirm
--------------
Replay the step with one operation at a time in float32 (R5); the first non-finite module is named by the replay's
microscope. Scaling queries and keys before their product (R14) removes an overflow of the attention scores.

Fix
---
Scale queries and keys before the matrix product, softmax in float32, bf16. One 175B project replaced GeLU by ReLU;
the scaling of queries and keys did not save one 104B run.

References
----------
BigScience tr8-104B, experiment 3. OPT-175B, run 11.10. Reported: GLM-130B 2023 (softmax in float32).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="fp16_activation_overflow",
    title="float16 activations overflow",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.ACT_MAX,),
    replay="replay with one operation at a time in float32 (R5), or queries and keys scaled before their product (R14)",
)

CLOSE = 3e4
"""Largest activation from which float16 (65,504) is about to overflow (catalogue)."""

FAR = 3e3
"""Below this, squares of sums inside a layer are still far from the end of the range."""

_KINDS = (EventKind.NON_FINITE, EventKind.LOSS_SCALE_COLLAPSE, EventKind.LOSS_SCALE_DROP)


def examine(view: View) -> Examination:
    """Looks for activations near the end of float16 before a value became non-finite or the loss scale fell."""
    found = Examination(view)
    if view.incident.member(*_KINDS) is None:
        return found
    scaled = view.curves.get(Role.LOSS_SCALE) is not None
    if view.settings.half_precision is False and not scaled:
        return found.exclude("the run is not in float16")
    tops = [s for s in view.curves.every(Role.ACT_MAX) if s.at(view.anchor) > 0]
    if not tops:
        found.missing.append("the largest activation per block: near 65,504 the forward pass overflows at any loss scale")
        return found
    highest = max(tops, key=lambda s: float(s.values[: s.at(view.anchor)].max()))
    top = float(highest.values[: highest.at(view.anchor)].max())
    if top < FAR:
        return found.exclude(f"the largest logged activation was {top:.3g} before the onset, far from 65,504")
    if top < CLOSE:
        found.missing.append(f"the largest activation of every block and operation (the logged ones reach {top:.3g})")
        return found
    weight = weights.STRONG if scaled or view.settings.half_precision else weights.REQUIRED
    found.supports(weight, f"{highest.name} had reached {top:.3g}; float16 ends at 65,504", Role.ACT_MAX, view.anchor, top)
    if view.incident.member(EventKind.LOSS_SCALE_COLLAPSE) is not None:
        found.supports(weights.SUPPORT, "halving the loss scale did not help: it only touches the backward pass", Role.LOSS_SCALE)
    if view.settings.half_precision is None and not scaled:
        found.missing.append("the precision of the run in its configuration")
    found.remedy = "Scale queries and keys before their product, keep softmax and norms in float32, or train in bf16; see which block it was by replay."
    return found
