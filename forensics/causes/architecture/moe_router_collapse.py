"""A few experts get most of the tokens and the rest stops learning.

What happened
-------------
An expert that is chosen more often learns faster and is chosen more often still. Without enough balancing pressure
the router settles on few experts; the others are dead weight.

How it shows in logs
--------------------
The coefficient of variation of the expert load is above 1, or the largest share is above 4 times its fair part, for
200 steps or more; over a quarter of the experts are idle. The loss sits on a plateau and does not spike.

What would contradict it
------------------------
Loads are balanced.

Looks like, but is not
----------------------
moe_router_logit_blowup: router logits grow and the loss spikes.

lr_too_low_or_zero: loads are balanced.

nccl_hang: an extreme imbalance can also end in a timeout.

How to confirm
--------------
Replay with a larger balancing coefficient (R14) and watch the loads.

Fix
---
Auxiliary loss of 1e-2, balancing by bias, capacity factor 1.25.

References
----------
Reported: Switch Transformer and GShard.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import trend_before
from forensics.model import EventKind, FloatArray, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="moe_router_collapse",
    title="The router sends everything to few experts",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.EXPERT_LOAD,),
    replay="replay with a larger coefficient of the balancing loss (R14)",
)

UNEVEN = 1.0
"""Coefficient of variation of the expert load from which it has collapsed (catalogue)."""

TOP = 4.0
"""Times its fair share that the most loaded expert gets (catalogue)."""

IDLE, IDLE_SHARE = 0.1, 0.25
"""An expert below this part of its fair share is idle; this share of idle experts is a collapse (catalogue)."""

LONG_STEPS = 200
"""Steps it must have lasted (catalogue)."""

_KINDS = (EventKind.PLATEAU, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.SLOW_SPIKE)


def examine(view: View) -> Examination:
    """Looks at the spread of the load over the experts in the steps before the event."""
    found = Examination(view)
    if len(view.run.all(Role.EXPERT_LOAD)) < 2:
        found.missing.append("the load of every expert")
        return found
    if view.event.kind not in _KINDS:
        return found
    experts = view.curves.every(Role.EXPERT_LOAD)
    windows = [s.values[s.at(view.anchor - LONG_STEPS) : s.at(view.anchor) + 1] for s in experts]
    if min(len(w) for w in windows) < 3:
        found.missing.append(f"the load of every expert over the {LONG_STEPS} steps before the event")
        return found
    shape = _spread(np.array([float(np.median(w)) for w in windows]))
    if shape is None:
        return found.exclude("the load is balanced over the experts")
    found.supports(weights.REQUIRED, f"for {LONG_STEPS} steps {shape}", Role.EXPERT_LOAD, view.anchor)
    balance = trend_before(view.curves.get(Role.AUX_LOSS), view.anchor)
    if balance is not None and balance.rises:
        found.supports(weights.SUPPORT, f"the balancing loss rose from {balance.start:.3g} to {balance.end:.3g}", Role.AUX_LOSS, balance.last_step)
    if view.event.kind in {EventKind.PLATEAU, EventKind.LEVEL_SHIFT, EventKind.DRIFT}:
        found.supports(weights.HINT, "the loss does not spike", Role.LOSS)
    found.remedy = "Raise the balancing loss (1e-2), balance by bias, or set the capacity factor to 1.25; go back to before the loads parted."
    return found


def _spread(loads: FloatArray) -> str | None:
    """What is uneven about the loads; None where they are balanced."""
    fair = float(loads.mean())
    if fair <= 0 or not np.isfinite(loads).all():
        return None
    idle = float((loads < IDLE * fair).mean())
    variation = float(loads.std() / fair)
    if len(loads) > TOP and loads.max() > TOP * fair:
        return f"one of {len(loads)} experts got {loads.max() / loads.sum():.0%} of the load"
    if idle > IDLE_SHARE:
        return f"{idle:.0%} of {len(loads)} experts were idle"
    return f"the load varied by {variation:.0%} over {len(loads)} experts" if variation > UNEVEN else None
