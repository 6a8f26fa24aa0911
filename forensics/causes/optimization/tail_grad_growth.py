"""Late growth of the gradient norm that decay, schedule and normalised layers bring about by themselves. Harmless.

What happened
-------------
With weight decay on normalised layers, the ratio of gradient to weight norm settles near sqrt(2 x decay / learning
rate). As the schedule lowers the learning rate, the weights shrink relative to the gradient and its norm rises.
Nothing is wrong.

How it shows in logs
--------------------
In the decay or tail phase the logarithm of the gradient norm falls on a line against the logarithm of the learning
rate, with a slope near -0.5 (-0.3 to -0.7), and the loss is still falling.

What would contradict it
------------------------
The loss rises with the gradient norm, or the slope is not near -1/2.

Looks like, but is not
----------------------
lr_decay_too_slow: gradient and activation norms drift up and the loss follows.

weight_decay_misapplied: one group's norm drifts.

attention_logit_growth: the logits grow too.

How to confirm
--------------
Fit log gradient norm against log learning rate over the decay phase. A replayed stretch at constant learning rate
(R6) shows a flat norm.

Fix
---
None needed. Where the growth itself is unwanted, the corrected decay of AdamC removes it; one public 32B run used it
in its decay phase.

References
----------
Defazio 2025, arXiv 2506.02285. Marin 32B retrospective.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import together
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="tail_grad_growth",
    title="The gradient norm rises as the learning rate falls",
    family="optimization",
    part=Part.AMPLIFIER,
    needs=(Role.LR, Role.GRAD_NORM),
    replay="a constant learning rate flattens it (R6)",
    info=(EventKind.GRAD_NORM_SURGE,),
)

SLOPES = (-0.7, -0.3)
"""Slope of log gradient norm against log learning rate that weight decay brings about (theory: -1/2)."""

BLOCKS = 20
"""The slope is fitted to medians of this many blocks."""

LINE = 0.8
"""Correlation from which the points lie on a line."""

FALLEN = 2.0
"""Factor by which the learning rate must have fallen to show a slope at all."""


def examine(view: View) -> Examination:
    """Looks whether the gradient norm follows one over the square root of a falling learning rate."""
    found = Examination(view)
    grad, rate, loss = view.curves.get(Role.GRAD_NORM), view.curves.get(Role.LR), view.curves.get(Role.LOSS)
    if grad is None or rate is None or view.schedule is None:
        found.missing.append("gradient norm and learning rate of the same steps")
        return found
    if view.event.kind is not EventKind.GRAD_NORM_SURGE or view.schedule.phase(view.anchor) not in {"decay", "tail"}:
        return found
    first = int(view.schedule.steps[view.schedule.warmup_end])
    lrs, norms = together(rate, grad, first, int(grad.steps[-1]))
    alive = (lrs > 0) & (norms > 0)
    lrs, norms = lrs[alive], norms[alive]
    if len(lrs) < 5 * BLOCKS or lrs.max() < FALLEN * lrs.min():
        return found.exclude("the learning rate fell by less than a factor of two: there is no slope to see")
    x = np.array([np.median(b) for b in np.array_split(np.log(lrs), BLOCKS)])
    y = np.array([np.median(b) for b in np.array_split(np.log(norms), BLOCKS)])
    slope, line = float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1]) if y.std() > 0 else 0.0
    if not SLOPES[0] <= slope <= SLOPES[1] or line > -LINE:
        return found.exclude(f"log gradient norm against log learning rate has slope {slope:.2f} (correlation {line:.2f}), not -1/2 on a line")
    if loss is not None and view.rise is not None:
        return found.exclude("the loss rose with the gradient norm")
    found.supports(weights.STRONG, f"the gradient norm follows the falling learning rate with slope {slope:.2f} (expected: -1/2)", Role.GRAD_NORM, view.anchor)
    if loss is not None and len(loss) > 4 * BLOCKS and np.median(loss.values[-BLOCKS:]) <= np.median(loss.values[-4 * BLOCKS : -2 * BLOCKS]):
        found.supports(weights.SUPPORT, "the loss is still falling", Role.LOSS, int(loss.steps[-1]))
    found.remedy = "None needed: weight decay on normalised layers does this. AdamC removes it where it is unwanted."
    return found
