"""Rare large gradients act without a bound."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import Part
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
    off = settings.clip_logged and not settings.clip
    if settings.clip and settings.clip <= LOOSE * grad.baseline:
        text = f"gradients are clipped at {settings.clip:g}, which bounds a norm of {grad.peak:.3g}"
        found.contradicts(weights.AGAINST, text, Role.GRAD_NORM, grad.peak_step)
    elif off or settings.clip:
        found.supports(weights.REQUIRED, "clipping is off" if off else f"the threshold {settings.clip:g} is far above the usual {grad.baseline:.3g}")
    else:
        found.missing.append("the clipping threshold (max_grad_norm) in the configuration")
    found.supports(weights.SUPPORT, f"the gradient norm reached {grad.peak:.3g}, {grad.factor:.3g} times its level", Role.GRAD_NORM, grad.peak_step, grad.peak)
    if view.rise is not None and view.grad_lead is not None and 0 <= view.grad_lead <= 3:
        found.supports(weights.HINT, "the loss followed within three steps", Role.LOSS, view.anchor)
    found.remedy = f"Clip the global gradient norm at 1.0, or at the 95th to 99th percentile of the healthy run (usual value here: {grad.baseline:.3g})."
    return found
