"""The log-partition of the output softmax drifts away from zero until the loss breaks, often late.

What happened
-------------
Cross-entropy does not see a common shift of all logits. Their level, the log-partition, can drift for tens of
thousands of steps; the output head grows, and precision or step size fails at the end, typically at a low learning
rate.

How it shows in logs
--------------------
The absolute log-partition drifts past 10, the norm of the output head grows through decay and tail, and the loss
diverges late. A sudden fall of a logged z-loss can come together with a spike.

What would contradict it
------------------------
The log-partition stays near 0.

Looks like, but is not
----------------------
attention_logit_growth: inside the blocks, attention logits grow.

weight_decay_misapplied: the same growth with decay missing on the head as its reason.

tail_grad_growth: only the gradient norm rises.

How to confirm
--------------
Replay from a checkpoint before the drift with a z-loss of 1e-4 (R14), and compute the log-partition of a few
checkpoints.

Fix
---
z-loss with 1e-4, or 1e-5 in a newer recipe; a final softcap of 30. The record of z-loss is mixed: it stopped a late
divergence of one 8B run, another group saw no gain at 1B, and in one 80B run its dips came with spikes without
showing which was first.

References
----------
PaLM 2022 and Wortsman et al. 2023, arXiv 2309.14322. Marin 8B report. IDEFICS chronicle. OLMo 2, 2025, arXiv
2501.00656. Gemma 2 (softcap).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import part_of, trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="output_logit_divergence",
    title="The output logits drift",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOGZ,),
    replay="replay with a z-loss of 1e-4 (R14)",
)

FAR = 10.0
"""Absolute log-partition past which it has drifted away (catalogue)."""

NEAR = 3.0
"""Absolute log-partition that is still near zero."""

HEAD_GROWTH = 1.1
"""Factor by which the norm of the output head grows when it carries the drift."""

_KINDS = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.NON_FINITE)


def examine(view: View) -> Examination:
    """Looks at the log-partition before the event, and at the norm of the output head."""
    found = Examination(view)
    logz = view.curves.get(Role.LOGZ)
    if logz is None or logz.at(view.anchor) == 0:
        found.missing.append("the log-partition of the output softmax (or the z-loss)")
        return found
    if view.event.kind not in _KINDS:
        return found
    at, trend = logz.at(view.anchor), trend_before(logz, view.anchor)
    level = float(np.median(logz.values[max(0, at - 10) : at]))
    squared = part_of(logz, "loss", "zloss")
    if not squared and abs(level) <= NEAR:
        return found.exclude(f"the log-partition was {level:.3g} before the event, near zero")
    away = trend is not None and abs(trend.end) > abs(trend.start)
    if away and trend is not None:
        text = f"{logz.name} had drifted from {trend.start:.3g} to {trend.end:.3g} since step {trend.first_step}"
        found.supports(weights.REQUIRED, text, Role.LOGZ, trend.last_step, trend.end)
        if not squared and abs(level) >= FAR:
            found.supports(weights.SUPPORT, f"a log-partition of {level:.3g} is far from zero (watch from {FAR:g})", Role.LOGZ, view.anchor, level)
    for norm in view.curves.every(Role.PARAM_NORM_GROUP):
        growth = trend_before(norm, view.anchor) if part_of(norm, "head", "lm", "output", "unembed") else None
        if away and growth is not None and growth.factor >= HEAD_GROWTH:
            text = f"{norm.name} grew with it, from {growth.start:.4g} to {growth.end:.4g}"
            found.supports(weights.SUPPORT, text, Role.PARAM_NORM_GROUP, growth.last_step)
            break
    found.remedy = "Add a z-loss of 1e-4 (1e-5 in a newer recipe) or a final softcap of 30 from a checkpoint before the drift; its record is mixed."
    return found
