"""Micro-batches with few counted tokens weigh as much as full ones.

What happened
-------------
When the loss is averaged per micro-batch and then over micro-batches or ranks, a micro-batch with few valid tokens
counts as much as a full one. Its noisy mean dominates the gradient.

How it shows in logs
--------------------
The variance of loss and gradient norm follows the spread of valid tokens across micro-batches (coefficient of
variation above 0.3).

What would contradict it
------------------------
The number of valid tokens is constant.

Looks like, but is not
----------------------
grad_accum_normalisation: a constant factor between accumulation settings, not a matter of spread.

loss_mask_error: the count itself is wrong.

batch_noise_small: noise of the right size for the batch.

How to confirm
--------------
Compute one step with the sum of losses divided by the global count and compare its gradient with the logged way
(R12).

Fix
---
Normalise by the global token count of the whole step; pack so that every micro-batch holds about equally many
targets.

References
----------
Common practice with packed sequences. The family of transformers issue 34191.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import deviation, logged, rank_correlation
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="packing_imbalance",
    title="Batches hold unequal numbers of counted tokens",
    family="data",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.TOK_VALID,),
    replay="the same step with the loss divided by the global token count (R12)",
    info=(EventKind.GRAD_NORM_SURGE, EventKind.SPIKE),
)

SPREAD = 0.3
"""Coefficient of variation of the counted tokens from which their spread matters (catalogue)."""

EVEN = 0.05
"""Below this the batches are equally full."""

FOLLOWS = 0.3
"""Rank correlation of emptiness and deviation of the loss from which the noise comes from there."""

POOR = 1 / 3
"""A batch with less than this share of the usual tokens is an empty one."""

WINDOW = 300
"""Logged points around the event that are looked at."""

_KINDS = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.NOISE_CHANGE, EventKind.OSCILLATION, EventKind.GRAD_NORM_SURGE)


def examine(view: View) -> Examination:
    """Looks whether the loss is off where few tokens were counted."""
    found = Examination(view)
    if not logged(view, Role.TOK_VALID) or not logged(view, Role.LOSS):
        found.missing.append("the number of counted (unmasked) target tokens of every batch")
        return found
    counts, loss = (view.curves.get(Role.TOK_VALID), view.curves.get(Role.LOSS)) if view.event.kind in _KINDS else (None, None)
    if counts is None or loss is None:
        return found
    low, high = int(view.anchor - WINDOW * view.every), int(view.anchor + WINDOW * view.every)
    i, j = (slice(s.at(low), s.at(high + 1)) for s in (counts, loss))
    _, left, right = np.intersect1d(counts.steps[i], loss.steps[j], assume_unique=True, return_indices=True)
    tokens, away = counts.values[i][left], np.abs(loss.u[j] - loss.centre[j])[right]
    if len(tokens) < 30 or tokens.mean() <= 0:
        found.missing.append("counted tokens and losses of the same thirty steps")
        return found
    spread = deviation(tokens) / float(tokens.mean())
    if spread < EVEN:
        return found.exclude(f"the batches are equally full ({tokens.mean():.4g} counted tokens, give or take {spread:.1%})")
    follows = rank_correlation(away, -tokens)
    if spread >= SPREAD and follows >= FOLLOWS:
        text = f"the fewer tokens count, the further the loss is off (rank correlation {follows:.2f}; the counts vary by {spread:.0%})"
        found.supports(weights.REQUIRED, text, Role.TOK_VALID, view.anchor)
    here = counts.values[counts.at(view.anchor)] if counts.at(view.anchor) < len(counts) else None
    if here is not None and view.rise is not None and 0 < here < POOR * float(np.median(tokens)):
        text = f"only {here:g} tokens were counted at the event, {here / float(np.median(tokens)):.0%} of the usual"
        found.supports(weights.REQUIRED, text, Role.TOK_VALID, view.anchor)
    found.remedy = "Divide the summed loss by the token count of the whole step, over all micro-batches and ranks; pack so that batches are equally full."
    return found
