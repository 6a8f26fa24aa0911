"""The engine that samples and the trainer that learns give different probabilities to the same tokens.

What happened
-------------
Other kernels, another dtype or other expert routing make the two engines disagree, most on unlikely tokens. Training
is then off-policy without knowing it; one day the gradient explodes and the reward crashes.

How it shows in logs
--------------------
The KL between the two engines drifts up before a sudden surge of the gradient norm and a crash of the reward. The
importance ratio of on-policy data is not 1. The effect depends on the type of GPU.

What would contradict it
------------------------
The mismatch is flat and at most 1e-3.

Looks like, but is not
----------------------
rl_kl_blowup: KL to the reference moves first.

rl_value_blowup: the critic moves first.

gradient_explosion_depth: outside RL.

How to confirm
--------------
Recompute the log-probabilities of stored rollouts in the trainer and compare (as R12); repeat the rollouts in float32
(R5).

Fix
---
Masked or truncated importance sampling per sequence, bitwise equal kernels, replay of the routing.

References
----------
Liu and Li 2025, "When Speed Kills Stability". arXiv 2605.14220 (the mismatch alone can collapse a run).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import Prepared, fell, named, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="rl_train_infer_mismatch",
    title="Rollout engine and trainer disagree",
    family="rl",
    part=Part.SUSCEPTIBILITY,
    needs=("KL between rollout engine and trainer",),
    replay="recompute log-probabilities in the trainer (as R12); repeat the rollouts in float32 (R5)",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

HEALTHY = 1e-3
"""A mismatch of at most this, and flat, is harmless (catalogue)."""

GROWN = 1.5
"""Factor of its growth that counts."""

NAMES = (("mismatch",), ("rollout", "kl"), ("kl", "train", "rollout"), ("rollout", "diff"), ("sampling", "logp", "diff"), ("infer", "kl"))
"""Words of names under which frameworks log the disagreement."""


def examine(view: View) -> Examination:
    """Looks for a disagreement of the two engines that grew before the event."""
    found = Examination(view)
    mismatch = _signal(view)
    if mismatch is None:
        found.missing.append("the KL between rollout engine and trainer (in reinforcement learning)")
        return found
    at = mismatch.at(view.anchor)
    level = float(np.median(mismatch.values[max(0, at - 20) : at]))
    trend = trend_before(mismatch, view.anchor)
    grows = trend is not None and trend.rises and trend.factor >= GROWN
    if not grows and level <= HEALTHY:
        return found.exclude(f"the mismatch of the two engines is flat at {level:.2g}")
    if not grows or trend is None:
        found.supports(weights.HINT, f"the two engines disagree by {level:.2g} (harmless: {HEALTHY:g})", mismatch.name, view.anchor)
        return found
    text = f"{mismatch.name} had grown from {trend.start:.2g} to {trend.end:.2g} since step {trend.first_step}"
    found.supports(weights.REQUIRED, text, mismatch.name, trend.last_step)
    if view.grad is not None and view.grad.onset_step is not None and view.grad.factor >= signs.SURGE:
        text = f"the gradient norm then surged to {number(view.grad.factor)} times its level"
        found.supports(weights.SUPPORT, text, Role.GRAD_NORM, view.grad.peak_step)
    reward = fell(view.curves.get(Role.REWARD), view.anchor)
    if reward is not None:
        found.supports(weights.SUPPORT, f"and the reward fell from {reward[0]:.3g} to {reward[1]:.3g}", Role.REWARD, view.anchor)
    found.remedy = "Mask or truncate importance weights per sequence, use bitwise equal kernels, and replay the expert routing."
    return found


def _signal(view: View) -> Prepared | None:
    known = (s for words in NAMES for s in named(view, *words))
    return next((s for s in known if s.at(view.anchor) >= 20), None)
