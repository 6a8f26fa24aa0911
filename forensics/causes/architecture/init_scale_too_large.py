"""Activations and gradients are too large from the first step, more so with depth and width.

What happened
-------------
The standard deviation of the initial weights does not shrink with width and depth as it should. Activations grow
through the blocks, gradients are huge at the start, and training never leaves a high floor or breaks away early.

How it shows in logs
--------------------
Any of these: a gradient norm in the first steps 50 or more times its later median; activation RMS that grows more
than twofold every ten layers; an initial loss more than one nat above ln(vocabulary size); a loss that never gets
below a high floor (6.3 to 8 in a public 104B series).

What would contradict it
------------------------
The initial loss is near ln(vocabulary size) and the depth profile is flat.

Looks like, but is not
----------------------
lr_warmup_missing: a flat depth profile and a full learning rate at step 0.

tokenizer_vocab_mismatch: a high initial loss with ordinary activations.

model_shape_error: a high floor, but a normal start.

How to confirm
--------------
Measure activation RMS by depth at step 0. Start again with a smaller standard deviation (R14).

Fix
---
Standard deviation sqrt(2/(5d)) or sqrt(1/(3d)) for width d, and output projections divided by sqrt(2L) for L layers.
For d = 14336 that is 0.0048, where 0.02 had been far too large for 104B. At its own sizes, OLMo 2 found plain N(0,
0.02) better than scaled initialisation.

References
----------
BigScience lessons learned and chronicles. ML engineering notes (public book). Takase et al. 2023, "Spike No More".
OLMo 2, 2025, arXiv 2501.00656.

"""

from __future__ import annotations

import math

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import by_depth
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="init_scale_too_large",
    title="The initial weights are too large",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.GRAD_NORM, Role.ACT_RMS),
    replay="the same start with a smaller standard deviation (R14)",
)

HUGE = 50.0
"""Times its later median that the gradient norm is in the first steps (catalogue)."""

FIRST_POINTS = 3
"""Logged points that are the start."""

PER_TEN = 2.0
"""Growth of the activation RMS over ten layers that is too much (catalogue)."""

ABOVE, MOST = 1.0, 3.0
"""Nats above ln(V) at the start that count, and times ln(V) above which the loss has another unit."""

WIDE = 2.0
"""Times sqrt(2/(5 d)) that the standard deviation may have for width d; at 104B, 0.02 was 4 times that."""


def examine(view: View) -> Examination:
    """Looks at the first steps: gradient norm, activations by depth, loss, and the configured standard deviation."""
    found = Examination(view)
    grad, layers = view.curves.get(Role.GRAD_NORM), by_depth(view.curves.every(Role.ACT_RMS))
    if grad is None and not layers:
        found.missing.append("gradient norm and activation RMS by depth from the first step on")
        return found
    if not signs.young(view):
        return found
    flat = _depth(found, view)
    if grad is not None and len(grad) > 20 * FIRST_POINTS:
        start, later = float(np.median(grad.values[:FIRST_POINTS])), float(np.median(grad.values[len(grad) // 10 :]))
        if start >= HUGE * later > 0:
            text = f"the gradient norm began at {start:.3g}, {start / later:.3g} times its later median"
            found.supports(weights.REQUIRED, text, Role.GRAD_NORM, int(grad.steps[0]), start)
    loss, vocabulary, width, deviation = view.curves.get(Role.LOSS), view.settings.vocab, view.settings.width, view.settings.init_std
    if loss is not None and len(loss) >= FIRST_POINTS and vocabulary is not None and vocabulary > 1:
        first, guess = float(np.median(loss.values[:FIRST_POINTS])), math.log(vocabulary)
        if guess + ABOVE < first <= MOST * guess:
            found.supports(weights.SUPPORT, f"the first loss is {first:.3g}; ln({vocabulary:g}) is {guess:.3g}", Role.LOSS, int(loss.steps[0]), first)
        elif flat and first <= guess + ABOVE and not found.supporting:
            return found.exclude("the first loss is that of a guess and activations are even over the depth")
    usual = math.sqrt(2 / (5 * width)) if width and width > 0 else None
    if usual and deviation and deviation > WIDE * usual and found.supporting:
        text = f"the configured deviation {deviation:g} is large for width {width:g} (sqrt(2/(5d)) = {usual:.2g})"
        found.set_for(weights.SUPPORT, text, "init_std")
    found.remedy = "Start again with a standard deviation of sqrt(2/(5d)) for width d, and output projections divided by sqrt(2L) for L layers."
    return found


def _depth(found: Examination, view: View) -> bool | None:
    """Weighs the profile of activations over the layers. True where it is flat, None where it is not logged."""
    layers = by_depth(view.curves.every(Role.ACT_RMS))
    if len(layers) < 3:
        found.missing.append("activation RMS by depth at step 0")
        return None
    bottom, top = float(np.median(layers[0].values[:FIRST_POINTS])), float(np.median(layers[-1].values[:FIRST_POINTS]))
    if bottom <= 0 or top <= 0:
        return None
    per_ten = (top / bottom) ** (10 / (len(layers) - 1))
    if per_ten <= PER_TEN:
        return True
    text = f"activations grow {per_ten:.2g} times over ten layers at the start ({bottom:.3g} in the first, {top:.3g} in the last of {len(layers)})"
    found.supports(weights.REQUIRED, text, Role.ACT_RMS, view.first_step)
    return False
