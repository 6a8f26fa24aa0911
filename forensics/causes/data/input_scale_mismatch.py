"""Training and evaluation, or old and new data, are normalised in different ways.

What happened
-------------
Mean and variance, value range, resolution or channel order differ between two pipelines. The first layer sees inputs
on another scale, and everything behind it works out of range.

How it shows in logs
--------------------
The activation RMS of the first layer jumps at the step where the pipeline changed, or the gap between training and
validation is large from the start.

What would contradict it
------------------------
The first layer's activation RMS is equal on both sides.

Looks like, but is not
----------------------
overfitting: the gap grows slowly.

norm_layer_instability: the gap comes from batch statistics.

mixture_shift: the inputs are scaled as before, their content is new.

How to confirm
--------------
Evaluate with the training transform, and train a few steps with the old transform (R3).

Fix
---
One definition of the transform, used by training, validation and inference.

References
----------
Our own rule.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared
from forensics.model import Part
from forensics.vocabulary import Role, normalise

INFO = CauseInfo(
    id="input_scale_mismatch",
    title="Inputs are scaled differently",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.ACT_RMS,),
    replay="replay with the old transform (R3)",
)

FIRST_LAYER = ("layer_0", "layers_0", "block_0", "blocks_0", "h_0", "input", "conv1", "conv_1", "stem", "first", "embed")
"""Parts of the names of signals from the first layer."""

JUMP = 1.3
"""Factor of the first layer's activations that another scale of the inputs brings; different content does not."""

EQUAL = 1.1
"""Within this factor nothing changed."""

EDGE = 5
"""Logged points on either side of the onset."""


def examine(view: View) -> Examination:
    """Looks for activations of the first layer that jumped with the loss."""
    found = Examination(view)
    if view.rise is None:
        return found
    first = next((s for s in view.curves.every(Role.ACT_RMS) if any(part in normalise(s.name) for part in FIRST_LAYER)), None)
    if first is None:
        found.missing.append("the activation RMS of the first layer")
        return found
    factor = _jump(first, view.anchor)
    if factor is None:
        found.missing.append("the activation RMS of the first layer on both sides of the event")
        return found
    size = max(factor, 1 / factor)
    if size < EQUAL:
        return found.exclude(f"the first layer's activations did not change ({first.name}: x{factor:.2f})")
    if size < JUMP:
        return found
    found.supports(weights.REQUIRED, f"the first layer's activations changed by x{factor:.2f} at the onset ({first.name})", Role.ACT_RMS, view.anchor)
    if view.grad_lead == 0 or view.grad is None or view.grad.onset_step is None:
        found.supports(weights.HINT, "nothing moved before the loss: the inputs and not the weights changed", Role.LOSS, view.anchor)
    found.remedy = f"Compare the transform of the inputs before and after step {view.anchor} (normalisation, value range, resolution, channel order)."
    return found


def _jump(signal: Prepared, step: int) -> float | None:
    at = signal.at(step)
    before, after = signal.values[max(0, at - EDGE) : at], signal.values[at : at + EDGE]
    if len(before) < 2 or len(after) < 2 or np.median(before) <= 0 or np.median(after) <= 0:
        return None
    return float(np.median(after) / np.median(before))
