"""Activations build up with depth or over time until something behind them fails.

What happened
-------------
Every block adds to the residual stream. Where outputs of attention and feed-forward layers grow, activations in the
last blocks drift up for thousands of steps, and a few become massive. Precision or step size gives in at last.

How it shows in logs
--------------------
The activation RMS of the last block drifts up by 3 sds or more over at least 500 steps before the onset. The loss
follows later; the gradient norm may drift with it.

The rule asks for a factor of 2 as well: activations of healthy runs grow slowly too.

What would contradict it
------------------------
Activation norms are flat before the onset.

Looks like, but is not
----------------------
attention_logit_growth: logits drift first.

lr_decay_too_slow: norms drift and a lower learning rate calms them.

fp8_outlier: sporadic jumps of one tensor, in float8 only.

How to confirm
--------------
Replay from 1,000 steps before with the residual branch scaled down (R14) and with a lower learning rate (R6). The
order of onsets across activation RMS, logits and log-partition tells which drifted first.

Fix
---
Pre-norm or reordered norm, depth-scaled initialisation, a lower learning rate, a clamp on activations. QKV-norm, or
QK-norm with softcap, allowed 1.5 times the learning rate in one study.

References
----------
OPT-175B chronicles, note at 56 %. NVIDIA 2024, arXiv 2410.16682.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="residual_growth",
    title="Activations grow along the residual stream",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ACT_RMS,),
    replay="replay with the residual branch scaled down (R14), or a lower learning rate (R6)",
)

GROWN = 2.0
"""Factor that matters: activations of healthy runs grow slowly as well."""

MUCH = 5.0
"""Factor at which the growth itself is out of the ordinary."""

_KINDS = (
    EventKind.SPIKE,
    EventKind.SLOW_SPIKE,
    EventKind.LEVEL_SHIFT,
    EventKind.DRIFT,
    EventKind.DIVERGENCE,
    EventKind.NON_FINITE,
    EventKind.LOSS_SCALE_COLLAPSE,
)


def examine(view: View) -> Examination:
    """Looks for activations that drifted up for hundreds of steps before the event."""
    found = Examination(view)
    activations = view.curves.every(Role.ACT_RMS) or view.curves.every(Role.ACT_MAX)
    if not activations:
        found.missing.append("the activation RMS of every block, of the last one at least")
        return found
    if view.event.kind not in _KINDS or signs.young(view):
        return found
    trends = [t for t in (trend_before(s, view.anchor) for s in activations) if t is not None and t.rises and t.factor >= GROWN]
    if not trends:
        return found.exclude("the logged activations did not grow before the event")
    most = max(trends, key=lambda t: t.factor)
    text = f"{most.name} had grown from {most.start:.3g} to {most.end:.3g} ({most.factor:.2g} times) since step {most.first_step}"
    found.supports(weights.REQUIRED, text, Role.ACT_RMS, most.last_step, most.end)
    if most.factor >= MUCH:
        found.supports(weights.SUPPORT, f"that is {most.sds:.0f} times its noise", Role.ACT_RMS, most.last_step)
    grad = trend_before(view.curves.get(Role.GRAD_NORM), view.anchor)
    if grad is not None and grad.rises:
        found.supports(weights.HINT, f"the gradient norm drifted up with it, from {grad.start:.3g} to {grad.end:.3g}", Role.GRAD_NORM, grad.last_step)
    found.remedy = "Lower the learning rate; for the next run pre-norm or reordered norm, depth-scaled initialisation, QK-norm or QKV-norm."
    return found
