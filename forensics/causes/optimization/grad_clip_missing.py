"""Rare large gradients act without a bound.

What happened
-------------
A few batches give gradients tens of times longer than usual. Without clipping, one such step moves the weights far
and leaves its square in Adam's second moment, so that later steps are too short for a while. It makes an event large;
something else produced the gradient.

How it shows in logs
--------------------
The gradient norm surges to 10 times its level or more, and the configuration says that clipping is off or the
threshold is more than 10 times the usual norm. The loss follows one to three steps later. It needs the norm before
clipping.

What would contradict it
------------------------
A threshold that bounds the surge speaks against it, and so does a loss that is high at the very step of the surge:
clipping acts only after that step. A gradient norm that did not surge excludes it. Mind that a clip bounds the
gradient, not Adam's update: public 176B and 32B runs spiked with clipping on.

Looks like, but is not
----------------------
gradient_explosion_depth: what made the gradient grow over several steps.

bad_batch_outlier: the batch that produced it.

sdc_transient: an error of one computation.

grad_clip_chronic: the opposite fault, clipping at most steps.

How to confirm
--------------
Replay with gradients clipped at 1.0 (R7): the event goes or is much smaller. If only a clip per tensor helps, one
tensor dominates.

Fix
---
Clip the global norm at 1.0, or between the 95th and 99th percentile of the healthy run. Stronger variants adapt the
threshold: ZClip (z above 2.5 against a running mean), AdaGC (per tensor).

References
----------
Common practice. ZClip, Kumar et al. 2025, arXiv 2504.02507. AdaGC, Wang et al. 2025, arXiv 2502.11034. BLOOM-176B
logs (norm 960 against a clip of 1.0).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.clipping import State
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="grad_clip_missing",
    title="Gradients are not clipped",
    family="optimization",
    part=Part.AMPLIFIER,
    needs=(Role.GRAD_NORM,),
    replay="replay with gradients clipped at 1.0: the event goes (R7)",
)

LOOSE = 10.0
"""A threshold above this many usual gradient norms clips nothing that matters (catalogue)."""


def examine(view: View) -> Examination:
    """Looks for a gradient surge that no clipping bounded."""
    found = Examination(view)
    grad, settings = view.grad, view.settings
    if grad is None:
        found.missing.append("the gradient norm before clipping")
        return found
    if grad.onset_step is None or grad.factor < signs.SURGE:
        return found.exclude("the gradient norm did not surge")
    if view.clipping.state is State.AFTER_CLIP:
        return found.exclude(view.clipping.sentence)
    off = settings.clip_logged and not settings.clip
    if settings.clip and settings.clip <= LOOSE * grad.baseline:
        text = f"gradients are clipped at {settings.clip:g}, which bounds a norm of {number(grad.peak)}"
        found.contradicts(weights.AGAINST, text, Role.GRAD_NORM, grad.peak_step)
    elif off or settings.clip:
        found.set_for(weights.REQUIRED, "clipping is off" if off else f"the threshold {settings.clip:g} is far above the usual {grad.baseline:.3g}", "clip")
    else:
        found.missing.append("the clipping threshold (max_grad_norm) in the configuration")
    text = f"the gradient norm reached {number(grad.peak)}, {number(grad.factor)} times its level"
    found.supports(weights.SUPPORT, text, Role.GRAD_NORM, grad.peak_step, grad.peak)
    lead = view.grad_lead
    if view.rise is not None and lead is not None and 1 <= lead <= 3:
        found.supports(weights.SUPPORT, "the loss followed within three steps", Role.LOSS, view.anchor)
    elif view.rise is not None and lead == 0 and view.event.kind not in {EventKind.DIVERGENCE, EventKind.NON_FINITE}:
        text = "the loss was high at the very step of the surge, before any update: clipping acts only after it"
        found.contradicts(weights.AGAINST, text, Role.LOSS, view.anchor)
    found.remedy = f"Clip the global gradient norm at 1.0, or at the 95th to 99th percentile of the healthy run (usual value here: {grad.baseline:.3g})."
    return found
