"""Responses hit the length limit, and their rewards become noise.

What happened
-------------
The policy learns that longer is better or cannot stop. Truncated responses are scored as failures, whatever they
contain, and the reward turns noisy.

How it shows in logs
--------------------
More than 0.3 of the responses are truncated and the length drifts up before the loss or the entropy moves.

What would contradict it
------------------------
The length is stable.

Looks like, but is not
----------------------
rl_reward_hacking: length is one of its forms, with a rising reward.

rl_entropy_collapse: entropy falls first.

How to confirm
--------------
Leave overlong samples out of the loss and continue from the checkpoint.

Fix
---
A soft penalty for overlong responses, a filter for truncated ones, a loss averaged over tokens.

References
----------
DAPO 2025, arXiv 2503.14476.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import named, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_length_runaway",
    title="Responses grow to the limit",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.RESPONSE_LENGTH,),
    replay="filter overlong samples",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

TRUNCATED = 0.3
"""Share of truncated responses from which their rewards are noise (catalogue)."""

FULL = 0.9
"""Share of the longest allowed response that the mean must reach where no share of truncated ones is logged."""

GROWN = 1.2
"""Factor by which the responses must have grown."""

POINTS = 20
"""Logged points before the event."""


def examine(view: View) -> Examination:
    """Looks for responses that grew before the event, and for many that hit the limit."""
    found = Examination(view)
    length = view.curves.get(Role.RESPONSE_LENGTH)
    if length is None or length.at(view.anchor) < POINTS:
        found.missing.append("the length of responses (in reinforcement learning)")
        return found
    trend = trend_before(length, view.anchor)
    level = float(np.median(length.values[length.at(view.anchor) - POINTS : length.at(view.anchor)]))
    if trend is None or not trend.rises or trend.factor < GROWN:
        return found.exclude(f"the length of responses is stable at {level:.4g}")
    found.supports(weights.SUPPORT, f"responses had grown from {trend.start:.4g} to {trend.end:.4g}", Role.RESPONSE_LENGTH, trend.last_step, trend.end)
    cut = next((s for words in (("trunc",), ("clipped", "ratio")) for s in named(view, *words) if s.at(view.anchor) >= POINTS), None)
    if cut is not None:
        share = float(np.median(cut.values[cut.at(view.anchor) - POINTS : cut.at(view.anchor)]))
        if share > TRUNCATED:
            found.supports(weights.REQUIRED, f"{share:.0%} of them hit the limit ({cut.name})", cut.name, view.anchor)
        else:
            found.contradicts(weights.DOUBT, f"only {share:.0%} of them hit the limit ({cut.name})", cut.name, view.anchor)
    elif view.settings.longest and level >= FULL * view.settings.longest:
        found.supports(weights.REQUIRED, f"their mean of {level:.4g} is at the limit of {view.settings.longest:g}", Role.RESPONSE_LENGTH, view.anchor)
    else:
        found.missing.append("the share of truncated responses")
    found.remedy = "Penalise overlong responses softly, leave truncated ones out of the loss, and average the loss over tokens."
    return found
