"""The step is at the edge of what the curvature allows: the loss swings but may go on falling.

What happened
-------------
Gradient descent is stable along a direction while its curvature is below 2/lr; for Adam the same holds for the
preconditioned curvature, with another bound. Training drives curvature up to that edge and hovers there. A rise of
the rate or a fast fall of the loss pushes it over, and the loss swings until the weights move to a flatter place.

How it shows in logs
--------------------
The loss swings with a period and growing amplitude, or rises while the learning rate is rising or at its peak.
Short-term it is not monotone, long-term it may still fall. The gradient norm swings with it (settles above 1.2 times
its level). The curvature itself is not in any log.

What would contradict it
------------------------
A measured curvature far below the bound. A rise far from any rise of the rate is not examined as this cause.

Looks like, but is not
----------------------
lr_too_high: the long-term trend turns up as well.

data_order_correlated and train_eval_mode_error: the period is that of the data or of evaluations.

batch_noise_small: no period.

gan_imbalance: two losses swing against each other.

How to confirm
--------------
Measure the largest curvature by power iteration and compare it with 2/lr (R15). Half the learning rate calms the
swing at once (R6).

Fix
---
Divide the learning rate by 1.5 to 2, or warm up longer. Leave it alone if the trend still falls.

References
----------
Cohen et al. 2021, arXiv 2103.00065. Edge of stochastic stability, 2024, arXiv 2412.20553. Reported: Lewkowycz et al.
2020 (catapult), and a bound of 38/lr for Adam with beta1 0.9.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="sharpness_edge",
    title="Training at the edge of stability",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS,),
    replay="measure the curvature against 2/lr (R15); half the learning rate calms at once (R6)",
)


def examine(view: View) -> Examination:
    """Looks for a swinging loss, or a spike right after the learning rate rose."""
    found = Examination(view)
    if view.event.kind is EventKind.OSCILLATION:
        found.supports(weights.REQUIRED, "the loss swings with growing amplitude", Role.LOSS, view.onset)
        if view.grad is not None and view.grad.settled > 1.2:
            found.supports(weights.HINT, f"the gradient norm swings with it, x{view.grad.settled:.2f}", Role.GRAD_NORM)
    elif view.rise is not None and view.schedule is not None and view.schedule.phase(view.anchor) in {"warmup", "peak"}:
        found.supports(weights.HINT, "the loss rose while the learning rate was rising", Role.LR, view.anchor)
    else:
        return found
    found.missing.append("the largest curvature (R15 measures it by power iteration)")
    found.remedy = "Divide the learning rate by 1.5 to 2 or warm up longer; leave it alone if the long-term trend still falls."
    return found
