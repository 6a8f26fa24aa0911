"""KL to the reference or to the old policy jumps, and the reward falls after it.

What happened
-------------
Updates are too large for the clipped objective to hold: many samples leave the clip range, the ratio explodes, and
the policy moves to where the reward model means nothing.

How it shows in logs
--------------------
KL drifts up, or jumps to 5 times its median within 50 updates, before the reward falls. The clip fraction is above
0.3 and the largest ratio above 10.

What would contradict it
------------------------
KL is flat.

Looks like, but is not
----------------------
rl_train_infer_mismatch: the two engines disagree first.

rl_entropy_collapse: entropy falls first.

rl_value_blowup: the value loss moves first.

How to confirm
--------------
Replay the update with the learning rate divided by 2 to 5 (R6) and with a larger KL coefficient.

Fix
---
Lower the learning rate, stop an epoch at 1.5 times the target KL, a smaller clip range, fewer epochs per batch.

References
----------
Practitioners' posts on GRPO monitoring. Reported: PPO notes.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, fell, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_kl_blowup",
    title="The policy leaves its reference too fast",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.KL,),
    replay="replay with the learning rate divided by 2 to 5 (R6); with a larger KL coefficient",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

JUMP = 5.0
"""Times its median that KL reaches (catalogue)."""

WITHIN = 50
"""Logged updates before the event in which it does (catalogue)."""

DRIFTED = 3.0
"""Factor of a slow growth that leaves the reference as well."""

CLIPPED = 0.3
"""Share of clipped samples above which the objective no longer holds the policy (catalogue)."""


def examine(view: View) -> Examination:
    """Looks for a jump or a growth of KL up to the event, many clipped samples, and a reward that fell after it."""
    found = Examination(view)
    kl = view.curves.get(Role.KL)
    if kl is None or kl.at(view.anchor) < 10:
        found.missing.append("the KL to the reference or to the old policy (in reinforcement learning)")
        return found
    step, text = _rose(kl, view)
    if text is None:
        return found.exclude("KL is flat up to the event")
    found.supports(weights.REQUIRED, text, Role.KL, step)
    clipped = view.curves.get(Role.CLIP_FRACTION)
    if clipped is not None:
        share = float(clipped.values[max(0, clipped.at(view.anchor) - WITHIN) : clipped.at(view.anchor) + 5].max(initial=0.0))
        if share > CLIPPED:
            found.supports(weights.SUPPORT, f"{share:.0%} of the samples were clipped", Role.CLIP_FRACTION, view.anchor)
    reward = fell(view.curves.get(Role.REWARD), view.anchor)
    if reward is not None:
        found.supports(weights.SUPPORT, f"the reward fell after it, from {reward[0]:.3g} to {reward[1]:.3g}", Role.REWARD, view.anchor)
    critic = view.move(Role.VALUE_LOSS)
    if critic is not None and critic.onset_step is not None and step is not None and critic.onset_step < step - kl.every:
        found.contradicts(weights.DOUBT, f"the value loss moved first, at step {critic.onset_step}", Role.VALUE_LOSS, critic.onset_step)
    found.remedy = "Divide the learning rate by 2 to 5, stop an epoch at 1.5 times the target KL, use a smaller clip range or fewer epochs per batch."
    return found


def _rose(kl: Prepared, view: View) -> tuple[int | None, str | None]:
    """The step at which KL was first far above its median, or from which it grew, with the words for it."""
    at = kl.at(view.anchor)
    before = kl.values[max(0, at - 2 * WITHIN) : max(1, at - 5)]
    usual = float(np.median(before[: max(10, len(before) - WITHIN // 2)]))
    first = max(0, at - WITHIN)
    high = np.flatnonzero(kl.values[first : at + 5] >= JUMP * usual) if usual > 0 else np.empty(0, np.int64)
    if len(high):
        i = first + int(high[0])
        return int(kl.steps[i]), f"KL rose to {kl.values[first : at + 5].max():.3g}, {kl.values[first : at + 5].max() / usual:.3g} times its median"
    trend = trend_before(kl, view.anchor)
    if trend is not None and trend.rises and trend.factor >= DRIFTED:
        return trend.first_step, f"KL had grown from {trend.start:.3g} to {trend.end:.3g} since step {trend.first_step}"
    return None, None
