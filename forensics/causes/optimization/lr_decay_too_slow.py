"""Late training needs smaller steps than the schedule gives.

What happened
-------------
As the model improves, the useful step shrinks. When the schedule stays high, gradient and activation norms creep up
until the loss turns with them. Restarting from a checkpoint repeats it, because the drift is in the state.

How it shows in logs
--------------------
The loss drifts up without any sharp step, outside warmup and re-warming. The gradient norm drifts with it and settles
above 1.2 times its level; activation norms per block, if logged, drift before the loss does. After a restart it comes
again about 100 or more steps later.

What would contradict it
------------------------
An onset in warmup, re-warming or at a rate of zero excludes it. A gradient norm that settles below 1.05 of its level
speaks against it.

Looks like, but is not
----------------------
tail_grad_growth: the gradient norm rises and the loss goes on falling.

attention_logit_growth, residual_growth: logits or activations drift first, whatever the rate.

lr_too_high: unrest all along, not only late.

mixture_shift: a step to a new level with a calm gradient.

How to confirm
--------------
Replay some hundred steps before the onset with 0.66 to 0.9 of the learning rate (R6): norms and loss flatten.

Fix
---
Lower the learning rate now, to 0.66 to 0.9 of its value, instead of restarting. In one 175B run this brought gradient
and activation norms down.

References
----------
OPT-175B chronicles (notes at 27 % and 56 %).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_decay_too_slow",
    title="The learning rate decays too slowly",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LR,),
    replay="replay with 0.66 to 0.9 of the learning rate (R6)",
)


def examine(view: View) -> Examination:
    """Looks for a slow rise of the loss in the stable or decay phase."""
    found = Examination(view)
    schedule = view.schedule
    if view.event.kind not in {EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.LEVEL_SHIFT} or view.rise is None:
        return found
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    phase = schedule.phase(view.anchor)
    if phase in {"warmup", "rewarm", "zero"}:
        return found.exclude(f"the onset is in the {phase} phase, not in the decay")
    if view.event.kind is EventKind.DRIFT:
        found.supports(weights.REQUIRED, "the loss drifted up without any sharp step", Role.LOSS, view.event.peak_step)
    found.supports(weights.HINT, f"in the {phase} phase, at a learning rate of {schedule.at(view.anchor) or 0.0:.3g}", Role.LR, view.anchor)
    grad = view.grad
    if grad is not None and grad.settled > 1.2:
        found.supports(weights.SUPPORT, f"the gradient norm drifted up with it, x{grad.settled:.2f}", Role.GRAD_NORM)
    elif grad is not None and grad.settled < 1.05:
        found.contradicts(-0.5, "the gradient norm stayed flat", Role.GRAD_NORM)
    if signs.sudden(view) and view.event.kind is not EventKind.DRIFT:
        found.contradicts(weights.AGAINST, "the loss was at its height within three logged steps: nothing drifted", Role.LOSS, view.anchor)
    found.missing.append("activation norms per block, which drift before the loss does in this case")
    found.remedy = "Lower the learning rate now, to 0.66 to 0.9 of its value, rather than restarting; a published 175B run calmed this way."
    return found
