"""The policy's distribution narrows until all samples are alike.

What happened
-------------
Likely tokens are reinforced and unlikely ones, clipped sooner, never recover. Samples of a prompt become equal,
advantages shrink, and learning stops.

How it shows in logs
--------------------
Entropy falls below 20 % of its start (a practitioner's rule of thumb is 0.5 nat) while the reward is on a plateau.
The spread of rewards shrinks.

What would contradict it
------------------------
Entropy is stable.

Looks like, but is not
----------------------
rl_zero_advantage: rewards are equal at healthy entropy.

rl_reward_hacking: the reward goes on rising.

rl_kl_blowup: KL jumps first.

How to confirm
--------------
Continue from the same checkpoint with a higher upper clip or an entropy bonus (R14).

Fix
---
Asymmetric clip (0.2 below, 0.28 above), dynamic sampling, a loss averaged over tokens.

References
----------
DAPO 2025, arXiv 2503.14476 (partly reported). The 0.5 nat rule is from a practitioner's post.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import named, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_entropy_collapse",
    title="Exploration died out",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ENTROPY, Role.REWARD),
    replay="go on from the checkpoint with a higher upper clip or an entropy bonus (R14)",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

LEFT = 0.2
"""Share of its start below which entropy has collapsed (catalogue)."""

STABLE = 0.5
"""Share above which it is stable."""

NATS = 0.5
"""Entropy that a practitioner's rule takes for the end of exploration."""

POINTS = 20
"""Logged points of start and of the level before the event."""


def examine(view: View) -> Examination:
    """Compares the entropy before the event with that of the start."""
    found = Examination(view)
    entropy = view.curves.get(Role.ENTROPY)
    if entropy is None or entropy.at(view.anchor) < 2 * POINTS:
        found.missing.append("the entropy of the policy (in reinforcement learning)")
        return found
    start = float(np.median(entropy.values[:POINTS]))
    level = float(np.median(entropy.values[entropy.at(view.anchor) - POINTS : entropy.at(view.anchor)]))
    if start <= 0 or level >= STABLE * start:
        return found.exclude(f"the entropy is stable ({start:.3g} at the start, {level:.3g} before the event)")
    if level > LEFT * start:
        return found
    found.supports(weights.REQUIRED, f"the entropy had fallen from {start:.3g} to {level:.3g} before the event", Role.ENTROPY, view.anchor, level)
    if 0 <= level < NATS < start:
        found.supports(weights.HINT, f"it is below {NATS:g} nat, a usual mark for the end of exploration", Role.ENTROPY, view.anchor)
    reward = view.curves.get(Role.REWARD)
    climb = trend_before(reward, view.anchor)
    if reward is not None and climb is None:
        found.supports(weights.SUPPORT, "the reward is on a plateau", Role.REWARD, view.anchor)
    elif climb is not None and climb.rises:
        found.contradicts(weights.DOUBT, f"the reward still rose, from {climb.start:.3g} to {climb.end:.3g}", Role.REWARD, climb.last_step)
    spread = next((t for t in (trend_before(s, view.anchor) for s in named(view, "reward", "std")) if t is not None), None)
    if spread is not None and not spread.rises:
        found.supports(weights.SUPPORT, f"the spread of rewards shrank from {spread.start:.3g} to {spread.end:.3g}", spread.name, spread.last_step)
    found.remedy = "Clip asymmetrically (0.2 below, 0.28 above), sample dynamically, average the loss over tokens; go back to before the entropy fell."
    return found
