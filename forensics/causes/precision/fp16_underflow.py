"""The loss scale is so small that small gradients are flushed to zero.

What happened
-------------
float16 cannot hold values much below 6e-8. When the loss scale has been driven down and does not come back, the small
gradients of early layers become exact zeros and those layers stop learning.

How it shows in logs
--------------------
The loss scale stays at 2^8 or below for 1,000 steps or more, and over 5 % of gradient entries are exactly zero, or
the gradient norm of early layers goes to 0. The loss sits on a plateau.

What would contradict it
------------------------
The share of exact zeros is small. The run is in bf16 or float32.

Looks like, but is not
----------------------
vanishing_or_dead_units: holds in float32 too.

lr_too_low_or_zero: gradients are alive, steps are not.

loss_scale_collapse: what drove the scale down in the first place.

How to confirm
--------------
Replay one step at 2^8 times the scale (R10) and in float32 (R5): the zeros become numbers.

Fix
---
A floor of 2^7 or more for the scale, a shorter growth interval, or bf16. Find what pushed the scale down first.

References
----------
OPT-175B chronicles (scales that underflow massively). Reported: Micikevicius et al. 2018, mixed precision training.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import named
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="fp16_underflow",
    title="float16 gradients vanish",
    family="precision",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS_SCALE,),
    replay="a scale 2^8 times as large (R10) or float32 (R5) brings the gradients back",
)

SMALL = 2.0**8
"""Loss scale at or below which small gradients are flushed to zero (catalogue)."""

LONG_STEPS = 1000
"""Steps it must have been that small (catalogue); a brief dip is the scaler at work."""

VANISHED = 1e-3
"""Share of its earlier median below which a layer's gradient norm has vanished."""

ZEROS = 0.05
"""Share of gradient entries that are exactly zero from which it matters (catalogue)."""

_KINDS = (EventKind.PLATEAU, EventKind.DRIFT, EventKind.LEVEL_SHIFT, EventKind.LOSS_SCALE_COLLAPSE, EventKind.LOSS_SCALE_DROP)


def examine(view: View) -> Examination:
    """Looks for a loss scale that was tiny for long, and layers whose gradient vanished meanwhile."""
    found = Examination(view)
    scale = view.curves.get(Role.LOSS_SCALE)
    if scale is None or len(scale) == 0:
        found.missing.append("the loss scale of every step")
        return found
    if view.event.kind not in _KINDS:
        return found
    window = scale.values[scale.at(view.anchor - LONG_STEPS) : scale.at(view.anchor) + 1]
    if view.anchor - int(scale.steps[0]) < LONG_STEPS or len(window) == 0 or window.max() > SMALL:
        return found.exclude(f"the loss scale was above {SMALL:g} within the {LONG_STEPS} steps before the event")
    text = f"the loss scale was at most {window.max():g} for {LONG_STEPS} steps before the event"
    found.supports(weights.SUPPORT, text, Role.LOSS_SCALE, view.anchor)
    _vanished(found, view)
    found.missing.append("the share of gradient entries that are exactly zero")
    found.remedy = "Give the scale a floor of 2^7 or more and a shorter growth interval, or train in bf16; first find what pushed the scale down."
    return found


def _vanished(found: Examination, view: View) -> None:
    for zeros in named(view, "zero", "grad"):
        at = min(zeros.at(view.anchor), len(zeros) - 1)
        if ZEROS < zeros.values[at] <= 1:
            found.supports(weights.REQUIRED, f"{zeros.values[at]:.0%} of the gradient entries are exactly zero ({zeros.name})", zeros.name, view.anchor)
            return
    for group in view.curves.every(Role.GRAD_NORM_GROUP):
        at = group.at(view.anchor)
        if 40 <= at < len(group) and float(np.median(group.values[at - 20 : at])) <= VANISHED * float(np.median(group.values[:20])):
            text = f"the gradient of {group.name} has vanished: {group.values[at]:.3g} from {np.median(group.values[:20]):.3g}"
            found.supports(weights.REQUIRED, text, group.name, view.anchor)
            return
