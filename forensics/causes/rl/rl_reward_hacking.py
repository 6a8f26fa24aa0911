"""The policy found what the reward model likes and nobody else does.

What happened
-------------
Optimising a proxy far enough separates it from the goal. Length, format or a phrase buys reward.

How it shows in logs
--------------------
The reward drifts up while a held-out evaluation is flat or falls. The response length drifts or saturates.

What would contradict it
------------------------
The held-out evaluation follows the reward.

Looks like, but is not
----------------------
rl_length_runaway: truncation and length lead.

target_leak_or_format: the supervised version of the same.

How to confirm
--------------
Score stored samples with another reward model, and read some.

Fix
---
An ensemble of reward models, a KL term, a penalty for length.

References
----------
A public summarisation example (all completions at the limit of 256 tokens, reward spread 0). Reported: Gao et al.
2022 on over-optimisation.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import part_of, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_reward_hacking",
    title="The reward rises, the quality does not",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.REWARD, Role.VAL_METRIC),
    replay="score the stored samples with another reward model",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

EVALUATIONS = 6
"""Evaluations before the event that show a direction."""

FLAT = 0.02
"""Relative change of the held-out metric that is none."""

BETTER_HIGH = ("acc", "accuracy", "score", "reward", "win", "winrate", "pass", "bleu", "f1")
"""Words of held-out metrics of which more is better."""


def examine(view: View) -> Examination:
    """Compares the trend of the reward with that of a held-out metric."""
    found = Examination(view)
    reward = view.curves.get(Role.REWARD)
    held_out = next((s for s in view.curves.every(Role.VAL_METRIC) if part_of(s, *BETTER_HIGH)), None)
    if reward is None or held_out is None:
        found.missing.append("the reward and a held-out evaluation (in reinforcement learning)")
        return found
    climb = trend_before(reward, view.anchor)
    if climb is None or not climb.rises:
        return found.exclude("the reward did not rise before the event")
    seen = held_out.values[held_out.at(climb.first_step) : held_out.at(view.anchor + 1)]
    if len(seen) < EVALUATIONS:
        found.missing.append(f"at least {EVALUATIONS} evaluations while the reward rose")
        return found
    third = len(seen) // 3
    start, end = float(np.median(seen[:third])), float(np.median(seen[-third:]))
    noise = float(np.median(np.abs(np.diff(seen))))
    change = end - start
    if change > max(FLAT * abs(start), noise):
        return found.exclude(f"the held-out {held_out.name} rose as well, from {start:.3g} to {end:.3g}")
    worse = change < -max(FLAT * abs(start), noise)
    text = f"the reward rose from {climb.start:.3g} to {climb.end:.3g} while {held_out.name} {'fell' if worse else 'stayed'} ({start:.3g} to {end:.3g})"
    found.supports(weights.REQUIRED if worse else weights.SUPPORT, text, Role.REWARD, climb.last_step)
    length = trend_before(view.curves.get(Role.RESPONSE_LENGTH), view.anchor)
    if length is not None and length.rises:
        found.supports(weights.SUPPORT, f"responses grew from {length.start:.4g} to {length.end:.4g}", Role.RESPONSE_LENGTH, length.last_step)
    found.missing.append("the score of stored samples under another reward model")
    found.remedy = "Use an ensemble of reward models, a KL term or a penalty for length; read samples from before and after the metric turned."
    return found
