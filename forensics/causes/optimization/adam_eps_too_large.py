"""Epsilon is comparable to sqrt(v), so some layers hardly move.

What happened
-------------
Adam divides by sqrt(v) + epsilon. Where gradients are small, epsilon dominates the divisor and the update becomes
plain, tiny gradient descent: those layers stop learning while others go on.

How it shows in logs
--------------------
In one group of layers the median of sqrt(v) is less than ten times epsilon, and its update-to-weight ratio is below
1e-5 (healthy is near 1e-3). The loss sits on a plateau that gets worse with larger width or learning rate, because
gradients per parameter shrink.

Without a checkpoint the rule compares epsilon with the gradient norm divided by the root of the number of parameters.

What would contradict it
------------------------
The ratio of sqrt(v) to epsilon is above 100 everywhere.

Looks like, but is not
----------------------
lr_too_low_or_zero: all layers stall alike.

optimizer_not_stepping: weights of the group are bit-equal, not merely slow.

bf16_update_stall: updates have the right size but are rounded away.

How to confirm
--------------
Read v from a checkpoint, compare the median of sqrt(v) with epsilon per layer, then replay a few hundred steps with
epsilon divided by 100 (R8) and watch the update-to-weight ratio of the stalled group.

Fix
---
Use 1e-8, down to 1e-15 when the optimizer states are float32; one published recipe went from 1e-5 to 1e-8. Watch for
spikes afterwards: another published study reports that smaller epsilon and larger beta2 provoke them.

References
----------
Wortsman et al. 2023, arXiv 2309.14322 (gradient RMS against epsilon; partly reported, not re-read here). OLMo 2,
2025, arXiv 2501.00656. Conflicting: AdaGC 2025, arXiv 2502.11034.

"""

from __future__ import annotations

import math

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="adam_eps_too_large",
    title="Adam's epsilon is as large as the second moment",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.GRAD_NORM, "epsilon and number of parameters in the configuration"),
    replay="replay with epsilon divided by 100 (R8)",
)

CLOSE = 10.0
"""Times epsilon below which the gradient of a usual parameter is ruled by it (catalogue)."""

FAR = 100.0
"""Times epsilon above which epsilon does not matter (catalogue)."""

STALLED = 1e-5
"""Update-to-weight ratio of a layer that hardly moves (catalogue; healthy: 1e-3)."""

_KINDS = (EventKind.PLATEAU, EventKind.DRIFT, EventKind.LEVEL_SHIFT)


def examine(view: View) -> Examination:
    """Compares epsilon with the usual gradient of one parameter: gradient norm over the root of their number."""
    found = Examination(view)
    epsilon, count, grad = view.settings.eps, view.settings.parameters, view.grad
    if epsilon is None or not count or grad is None:
        found.missing.append("Adam's epsilon, the number of parameters and the gradient norm (or second moments in a checkpoint)")
        return found
    if view.event.kind not in _KINDS or epsilon <= 0 or view.settings.adaptive is False:
        return found
    usual = grad.baseline / math.sqrt(count)
    if usual >= FAR * epsilon:
        return found.exclude(f"a usual gradient of one parameter is {usual:.2g}, far above the epsilon of {epsilon:g}")
    if usual < CLOSE * epsilon:
        text = f"a usual gradient of one parameter is {usual:.2g}, {usual / epsilon:.2g} times the epsilon of {epsilon:g}"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM, view.anchor)
    for ratio in view.curves.every(Role.UW_RATIO):
        at = min(ratio.at(view.anchor), len(ratio) - 1)
        if found.supporting and at >= 0 and ratio.values[at] < STALLED:
            found.supports(weights.SUPPORT, f"{ratio.name} is {ratio.values[at]:.2g}: hardly anything moves", Role.UW_RATIO, view.anchor)
            break
    found.missing.append("second moments in a checkpoint, to compare with epsilon layer by layer")
    found.remedy = "Use 1e-8, down to 1e-15 where the optimizer states are float32; watch for spikes afterwards, published advice conflicts."
    return found
