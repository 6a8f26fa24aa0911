"""The gradient of the embedding dwarfs all others a few steps before the loss breaks.

What happened
-------------
Early in training the embedding receives gradients orders of magnitude above those of other layers. A surge of it
throws off the whole model within a few steps.

How it shows in logs
--------------------
The embedding makes up more than 0.9 of the global gradient norm, and its norm stands out by a robust z of 6 or more
one to ten steps before the loss rises.

What would contradict it
------------------------
The embedding's share of the norm is flat.

Looks like, but is not
----------------------
adam_v_stale: the second moment of the embedding is too small; both can be true.

gradient_explosion_depth: all early layers grow.

batch_state_interaction: no group stands out.

How to confirm
--------------
Replay with the embedding frozen, or with its gradient multiplied by 0.1 (R14).

Fix
---
Shrink the embedding gradient by a factor of 0.1, add a LayerNorm after the embedding, or scale embeddings by sqrt(d).

References
----------
GLM-130B, ICLR 2023 (shrink of 0.1; partly reported, not re-read here). BigScience embedding norm experiments. Takase
et al. 2023, "Spike No More".

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import lead_of, part_of, together
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="embedding_grad_surge",
    title="The embedding gradient surges",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.GRAD_NORM_GROUP,),
    replay="replay with the embedding frozen, or its gradient shrunk (R14)",
)

SURGE_Z = 6.0
"""Robust z of the embedding's gradient norm (catalogue)."""

SHARE = 0.9
"""Share of the global norm that the embedding holds in its surge (catalogue)."""

LEAD = 10
"""Logged points by which it comes before the loss at most (catalogue)."""

EMBEDDING = ("embed", "embedding", "embeddings", "emb", "wte", "tok", "embedder")
"""Words that name an embedding."""


def examine(view: View) -> Examination:
    """Looks for a surge of the embedding's gradient norm before the loss rises."""
    found = Examination(view)
    group = next((s for s in view.curves.every(Role.GRAD_NORM_GROUP) if part_of(s, *EMBEDDING)), None)
    if group is None:
        found.missing.append("the gradient norm of the embedding")
        return found
    if view.rise is None and view.event.kind is not EventKind.NON_FINITE:
        return found
    move = view.move_of(group)
    if move is None or move.onset_step is None or move.z < SURGE_Z:
        return found.exclude(f"the gradient norm of {group.name} did not surge")
    lead = lead_of(view, move)
    if lead is None and view.rise is not None:
        found.missing.append("every step logged: whether the embedding's gradient led the loss is unknown")
    if lead is not None and not 1 <= lead <= LEAD * max(1.0, view.every):
        found.contradicts(weights.DOUBT, "the surge did not come before the loss", Role.GRAD_NORM_GROUP, move.onset_step)
    elif lead is not None:
        text = f"{group.name} rose to {number(move.factor)} times its level {lead} steps before the loss"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM_GROUP, move.onset_step, move.peak)
    whole = view.curves.get(Role.GRAD_NORM)
    if whole is None:
        found.missing.append("the global gradient norm")
    else:
        part, total = together(group, whole, move.onset_step, max(view.anchor, move.onset_step))
        share = float(np.max(part[total > 0] / total[total > 0], initial=0.0))
        if SHARE <= share <= 1.05:
            found.supports(weights.REQUIRED if lead is None else weights.SUPPORT, f"it made up {share:.0%} of the global norm", Role.GRAD_NORM_GROUP)
        elif len(part):
            found.contradicts(weights.DOUBT, f"it made up {share:.0%} of the global norm only", Role.GRAD_NORM_GROUP)
    found.remedy = "Multiply the embedding's gradient by 0.1, add a LayerNorm after the embedding, or scale embeddings by sqrt(d)."
    return found
