"""Advantages are zero, so there is nothing to learn from.

What happened
-------------
When prompts are too easy or too hard, every sample of a group is right or wrong alike, and the advantage within the
group is 0. Most of the batch contributes no gradient.

How it shows in logs
--------------------
The spread of rewards is 0 in more than half of the groups, the gradient norm goes to 0, and reward and loss are flat.

What would contradict it
------------------------
The spread is normal.

Looks like, but is not
----------------------
rl_entropy_collapse: samples are equal because the policy is narrow.

lr_too_low_or_zero: gradients are alive.

How to confirm
--------------
Count groups with equal rewards; continue with those filtered out.

Fix
---
Sample until groups with a spread fill the batch (dynamic sampling); adapt the difficulty of prompts.

References
----------
The same public summarisation example as for rl_reward_hacking.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, named, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_zero_advantage",
    title="All samples of a group get the same reward",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=("spread of rewards within a group", Role.REWARD),
    replay="filter groups with equal rewards",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

GONE = 0.05
"""Share of its start below which the spread of rewards is gone."""

EQUAL = 0.5
"""Share of groups with equal rewards from which little is left to learn from (catalogue)."""

POINTS = 20
"""Logged points of start and of the level before the event."""

_QUIET = frozenset({EventKind.SPIKE, EventKind.NON_FINITE, EventKind.DIVERGENCE})
"""Kinds that an absence of gradients cannot make."""


def examine(view: View) -> Examination:
    """Looks for a spread of rewards that went to zero, or a large share of groups with equal rewards."""
    found = Examination(view)
    shares = [s for s in named(view, "zero", "std") if s.at(view.anchor) >= POINTS]
    spreads = [s for s in named(view, "reward", "std") if s not in shares and "zero" not in s.name and s.at(view.anchor) >= 2 * POINTS]
    if not shares and not spreads:
        found.missing.append("the spread of rewards within groups (in reinforcement learning)")
        return found
    if view.event.kind in _QUIET:
        return found
    share = _level(shares[0], view) if shares else None
    if share is not None and EQUAL < share <= 1:
        found.supports(weights.REQUIRED, f"in {share:.0%} of the groups all rewards were equal ({shares[0].name})", shares[0].name, view.anchor)
    elif spreads:
        start, level = float(np.median(spreads[0].values[:POINTS])), _level(spreads[0], view)
        if level > GONE * start:
            return found.exclude(f"the spread of rewards was {level:.3g} before the event")
        found.supports(weights.REQUIRED, f"the spread of rewards had fallen from {start:.3g} to {level:.3g} ({spreads[0].name})", spreads[0].name, view.anchor)
    if not found.supporting:
        return found.exclude("most groups had rewards that differ")
    grad = trend_before(view.curves.get(Role.GRAD_NORM), view.anchor)
    if grad is not None and not grad.rises:
        found.supports(weights.SUPPORT, f"the gradient norm fell with it, from {grad.start:.3g} to {grad.end:.3g}", Role.GRAD_NORM, grad.last_step)
    found.remedy = "Sample until groups with a spread fill the batch (dynamic sampling), and adapt the difficulty of prompts."
    return found


def _level(signal: Prepared, view: View) -> float:
    at = signal.at(view.anchor)
    return float(np.median(signal.values[max(0, at - POINTS) : at]))
