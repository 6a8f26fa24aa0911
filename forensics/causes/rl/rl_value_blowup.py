"""The value loss breaks away and takes the policy with it.

What happened
-------------
Returns on an unexpected scale, too large a learning rate or a shared body let the critic diverge. Its advantages are
noise, and the policy follows them.

How it shows in logs
--------------------
The value loss stands out by a robust z of 6 or more at least one update before policy loss or KL. The explained
variance is below 0.

What would contradict it
------------------------
The critic is calm.

Looks like, but is not
----------------------
rl_kl_blowup: KL first.

rl_reward_hacking: nothing inside moves.

lr_too_high: policy and critic together.

How to confirm
--------------
Freeze the policy and train the critic alone from the checkpoint.

Fix
---
Clip the value loss, normalise rewards, warm up the critic, a larger epsilon for Adam.

References
----------
PPO implementation notes (partly reported).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import lead_of, named
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_value_blowup",
    title="The critic diverges first",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.VALUE_LOSS,),
    replay="freeze the policy and train the critic",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

SURGE_Z = 6.0
"""Robust z of the value loss (catalogue)."""

WITHIN = 50
"""Logged updates by which it comes before the event at most."""


def examine(view: View) -> Examination:
    """Looks for a value loss that broke away before the policy did."""
    found = Examination(view)
    if view.curves.get(Role.VALUE_LOSS) is None:
        found.missing.append("the value loss of the critic (in reinforcement learning)")
        return found
    critic = view.move(Role.VALUE_LOSS)
    if critic is None or critic.onset_step is None or critic.z < SURGE_Z or critic.onset_step < view.anchor - WITHIN * critic.every:
        return found.exclude("the critic was calm up to the event")
    lead = lead_of(view, critic) if view.rise is not None else view.anchor - critic.onset_step
    text = f"the value loss rose from {critic.baseline:.3g} to {number(critic.peak)}"
    if lead is not None and lead >= 1:
        found.supports(weights.REQUIRED, f"{text}, {lead} steps before the event", Role.VALUE_LOSS, critic.onset_step, critic.peak)
    elif lead is not None and lead < 0:
        return found.exclude(f"the value loss moved {-lead} steps after the event")
    else:
        found.supports(weights.SUPPORT, f"{text} with the event", Role.VALUE_LOSS, critic.onset_step, critic.peak)
    for explained in named(view, "explained", "var"):
        window = explained.values[max(0, explained.at(view.anchor) - 10) : explained.at(view.anchor) + 5]
        if len(window) and float(np.median(window)) < 0:
            found.supports(weights.SUPPORT, f"the explained variance was {np.median(window):.2g}: worse than a constant", explained.name, view.anchor)
            break
    kl = view.move(Role.KL)
    if kl is not None and kl.onset_step is not None and kl.onset_step < critic.onset_step - critic.every:
        found.contradicts(weights.DOUBT, f"KL moved first, at step {kl.onset_step}", Role.KL, kl.onset_step)
    found.remedy = "Clip the value loss, normalise rewards, warm up the critic, and give its Adam a larger epsilon."
    return found
