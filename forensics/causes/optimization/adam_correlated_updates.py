"""Gradients near epsilon become correlated from step to step, and Adam's updates grow without pointing downhill.

What happened
-------------
In some layers, often early ones, gradients shrink towards Adam's epsilon. Numerator and denominator then move
together, the updates of many coordinates take the same extreme value step after step, and the update grows long while
it no longer follows the descent direction.

How it shows in logs
--------------------
The share of coordinates with sqrt(v) below 10 epsilon rises. A histogram of one step's updates has two peaks near +1
and -1 instead of one hump at 0. The update-to-weight ratio climbs while the gradient norm is flat or falling. Large
batches and deep models are most exposed; the loss shifts up or drifts away.

What would contradict it
------------------------
sqrt(v) is far above epsilon in every tensor, and the histogram of updates has a single hump.

Looks like, but is not
----------------------
adam_v_stale: a large gradient meets a small v, and the gradient norm rises with the loss; here the gradient stays
small.

lr_too_high: update and gradient grow together.

attention_logit_growth: the attention logits drift first.

How to confirm
--------------
From the checkpoint before the drift, replay with epsilon at 1e-15 or 0 (R8), with half the learning rate (R6), and
with the early layers frozen (R14). Which of them calms the run names the mechanism.

Fix
---
Lower the learning rate, lower epsilon (only with float32 states), use a smaller batch, or skip the batches of the
event. Advice on epsilon conflicts between published runs: test, do not assume.

References
----------
Molybog et al. 2023, arXiv 2304.09871 (runs from 7B to 546B). On the conflict about epsilon: OLMo 2, 2025, and
Wortsman et al. 2023, arXiv 2309.14322, favour smaller values; AdaGC 2025, arXiv 2502.11034, reports that smaller
values provoke spikes.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Trend, trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="adam_correlated_updates",
    title="Adam's updates became correlated in time",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.UPDATE_RMS, Role.UW_RATIO, Role.GRAD_NORM),
    replay="replay with epsilon 1e-15 (R8), a lower learning rate (R6), or the early layers frozen (R14)",
)

GROWN = 1.5
"""Factor by which the updates must have grown."""

STEADY_LR = 1.05
"""The learning rate may have grown by this factor at most: a larger one makes larger updates by itself."""

_KINDS = (EventKind.LEVEL_SHIFT, EventKind.SLOW_SPIKE, EventKind.DRIFT, EventKind.DIVERGENCE)


def examine(view: View) -> Examination:
    """Looks for updates that grew before the event although the gradient did not."""
    found = Examination(view)
    updates, grad = (*view.curves.every(Role.UW_RATIO), *view.curves.every(Role.UPDATE_RMS)), view.curves.get(Role.GRAD_NORM)
    if not updates or grad is None:
        found.missing.append("update RMS or update-to-weight ratio, and the gradient norm")
        return found
    if view.event.kind not in _KINDS:
        return found
    if view.settings.adaptive is False:
        return found.exclude(f"the optimizer is {view.settings.optimizer}, which has no second moments")
    trends = [t for t in (trend_before(s, view.anchor) for s in updates) if t is not None and t.rises and t.factor >= GROWN]
    if not trends:
        return found.exclude("the updates did not grow before the event")
    most = max(trends, key=lambda t: t.factor)
    gradient = trend_before(grad, view.anchor)
    if gradient is not None and gradient.rises:
        return found.exclude(f"the gradient norm grew with the updates (from {gradient.start:.3g} to {gradient.end:.3g})")
    if _rate_rose(view, most):
        return found
    text = f"{most.name} grew from {most.start:.3g} to {most.end:.3g} since step {most.first_step} while the gradient norm did not"
    role = Role.UW_RATIO if view.curves.every(Role.UW_RATIO) else Role.UPDATE_RMS
    found.supports(weights.REQUIRED, text, role, most.last_step, most.end)
    if gradient is not None:
        text = f"the gradient norm fell meanwhile, from {gradient.start:.3g} to {gradient.end:.3g}"
        found.supports(weights.SUPPORT, text, Role.GRAD_NORM, gradient.last_step)
    found.missing.append("second moments in a checkpoint: the share of coordinates with sqrt(v) below 10 epsilon")
    found.remedy = "Lower the learning rate, or epsilon where the states are float32 (published advice on epsilon conflicts: test it), or use a smaller batch."
    return found


def _rate_rose(view: View, trend: Trend) -> bool:
    if view.schedule is None:
        return False
    before, after = view.schedule.at(trend.first_step), view.schedule.at(trend.last_step)
    return before is not None and after is not None and bool(np.isfinite(before)) and after > STEADY_LR * before
