"""Long sequences early in training bring gradients of extreme variance.

What happened
-------------
In the first part of training, long sequences give rare, very large gradients. They push up the second moments, and
large batches with high learning rates become unstable.

How it shows in logs
--------------------
During the first 10 % of steps the gradient norm, or the largest second moment, follows the mean or maximal sequence
length of the batch (Spearman correlation 0.5 or more). Events fall on batches with long sequences.

What would contradict it
------------------------
A correlation below 0.2, or packed sequences of constant length.

Looks like, but is not
----------------------
lr_warmup_missing: events come whatever the length.

packing_imbalance: the count of valid tokens varies, not the length.

repeated_ngram_docs: single documents, at any time of the run.

How to confirm
--------------
Replay the event with its sequences truncated to the usual length (R3): it is gone.

Fix
---
Warm up the sequence length along with the learning rate. Published gains: stable training at 8x the batch and 4x the
learning rate for GPT-2, 8x and 40x for a GPT-3 of 125M.

References
----------
Li et al. 2022, arXiv 2108.06084.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import logged, rank_correlation, together
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="long_sequence_outlier",
    title="Long sequences upset early training",
    family="data",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.SEQ_LEN, Role.GRAD_NORM),
    replay="replay with the sequences truncated (R3)",
    info=(EventKind.GRAD_NORM_SURGE, EventKind.SPIKE),
)

EARLY_SHARE, EARLY_POINTS = 0.1, 100
"""Share of the run, and logged points at least, in which long sequences upset training (catalogue: the first 10 %)."""

FOLLOWS, UNRELATED = 0.5, 0.2
"""Spearman correlation of length and gradient from which one follows the other, and below which it does not (catalogue)."""

FEWEST = 30
"""Points that make a correlation."""

LONG = 0.9
"""Quantile of the lengths so far from which a batch is a long one."""


def examine(view: View) -> Examination:
    """Correlates sequence length and gradient norm in the first part of the run."""
    found = Examination(view)
    if not logged(view, Role.SEQ_LEN) or not logged(view, Role.GRAD_NORM):
        found.missing.append("the sequence length of every batch, and the gradient norm")
        return found
    end = int(view.first_step + max(EARLY_SHARE * view.length, EARLY_POINTS * view.every))
    lengths, grad = (view.curves.get(Role.SEQ_LEN), view.curves.get(Role.GRAD_NORM)) if view.anchor <= end else (None, None)
    if lengths is None or grad is None:
        return found
    sizes, norms = together(lengths, grad, view.first_step, end)
    if len(sizes) < FEWEST:
        found.missing.append(f"lengths and gradient norms of at least {FEWEST} steps")
        return found
    if sizes.min() == sizes.max():
        return found.exclude(f"all sequences have the length {sizes[0]:g}")
    follows = rank_correlation(sizes, norms)
    if follows < UNRELATED:
        return found.exclude(f"the gradient norm does not follow the sequence length (rank correlation {follows:.2f})")
    if follows < FOLLOWS:
        return found
    text = f"in the first {len(sizes)} logged steps the gradient norm follows the sequence length (rank correlation {follows:.2f})"
    found.supports(weights.REQUIRED, text, Role.SEQ_LEN, view.anchor)
    here = lengths.values[max(0, lengths.at(view.anchor) - 1) : lengths.at(view.anchor) + 1]
    if len(here) and here.max() >= np.quantile(sizes, LONG):
        found.supports(weights.SUPPORT, f"the event falls on a long batch ({here.max():g} against {np.median(sizes):g} usually)", Role.SEQ_LEN, view.anchor)
    found.remedy = "Warm up the sequence length along with the learning rate; until then truncate, or use smaller batches of the long sequences."
    return found
