"""Router logits grow until low precision flips near ties.

What happened
-------------
The router's softmax saturates as its logits grow. In 16 bit, two experts with nearly equal logits change places by
rounding alone, and gradients become erratic.

How it shows in logs
--------------------
The largest router logit drifts up before the onset. In a repeat of the same step more than 10 % of the tokens change
their expert.

What would contradict it
------------------------
Router logits are small.

Looks like, but is not
----------------------
moe_router_collapse: unequal loads and a plateau.

attention_logit_growth: the same growth in attention.

rl_train_infer_mismatch: routing differs between two engines.

How to confirm
--------------
Repeat one step (R0) and count routing flips; replay with the router in float32 and with a router z-loss of 1e-3
(R14).

Fix
---
Router in float32, router z-loss 1e-3.

References
----------
Reported: ST-MoE 2022.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="moe_router_logit_blowup",
    title="The router's logits grow",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ROUTER_LOGIT_MAX,),
    replay="replay with the router in float32 and a router z-loss of 1e-3 (R14)",
)

GROWN = 1.5
"""Factor of growth that counts, as for attention logits."""

SMALL = 10.0
"""A router logit below this is small: its softmax is still soft."""

_KINDS = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.NON_FINITE)


def examine(view: View) -> Examination:
    """Looks for router logits that drifted up before the event."""
    found = Examination(view)
    routers = view.curves.every(Role.ROUTER_LOGIT_MAX)
    if not routers:
        found.missing.append("the largest router logit")
        return found
    if view.event.kind not in _KINDS:
        return found
    top = max((float(s.values[: s.at(view.anchor)].max(initial=0.0)) for s in routers), default=0.0)
    if top < SMALL:
        return found.exclude(f"the router logits were at most {top:.3g} up to the onset")
    trends = [t for t in (trend_before(s, view.anchor) for s in routers) if t is not None and t.rises and t.factor >= GROWN]
    if not trends:
        return found.exclude("the router logits did not grow before the event")
    most = max(trends, key=lambda t: t.factor)
    text = f"{most.name} had grown from {most.start:.3g} to {most.end:.3g} since step {most.first_step}"
    found.supports(weights.REQUIRED, text, Role.ROUTER_LOGIT_MAX, most.last_step, most.end)
    balance = trend_before(view.curves.get(Role.AUX_LOSS), view.anchor)
    if balance is not None and balance.rises:
        found.supports(weights.SUPPORT, f"the auxiliary loss rose with it, from {balance.start:.3g} to {balance.end:.3g}", Role.AUX_LOSS, balance.last_step)
    found.missing.append("the share of tokens that change their expert when the step is repeated (R0)")
    found.remedy = "Keep the router in float32 and add a router z-loss of 1e-3; resume from before the growth."
    return found
