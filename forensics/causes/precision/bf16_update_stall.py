"""Updates smaller than half a unit in the last place of bf16 weights vanish.

What happened
-------------
bf16 keeps 8 bits of precision. An update of less than about 2^-9 of a weight is rounded away when there is no float32
master copy: adding 0.001 to 1.0 a thousand times leaves 1.0.

How it shows in logs
--------------------
The log alone does not show it. In two checkpoints ten steps apart or more, the weights are bf16 (or fp16) without a
float32 copy, their tensors moved, and yet more than half of the single numbers are equal to the last bit. Progress
stalls, worst in decay and tail where the learning rate is small.

What would contradict it
------------------------
A float32 master copy, float32 weights, or numbers that nearly all changed.

Looks like, but is not
----------------------
optimizer_not_stepping: all numbers of a tensor are unchanged.

lr_too_low_or_zero: the learning rate itself is tiny.

adam_eps_too_large: the updates themselves are tiny.

How to confirm
--------------
Compare two checkpoints bit by bit (forensics diff). Replay a stretch with float32 master weights (R5): descent resumes.

Fix
---
Float32 master weights, stochastic rounding, or Kahan summation. A study of pure bf16 training regained up to 7 %
accuracy this way.

References
----------
Zamirai et al. 2020, arXiv 2010.06192.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="bf16_update_stall",
    title="Updates are rounded away in bf16",
    family="precision",
    part=Part.SUSCEPTIBILITY,
    replay="replay with float32 master weights: descent resumes (R5)",
    info=(EventKind.PLATEAU,),
)

_KINDS = (EventKind.PLATEAU, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.OVERFITTING, EventKind.NOISE_CHANGE)


def examine(view: View) -> Examination:
    """Looks for half-precision weights of which most numbers did not change between two checkpoints."""
    found = Examination(view)
    if view.event.kind not in _KINDS:
        return found
    rounded = view.checkpoints.rounded_away()
    if rounded is None:
        if view.checkpoints.pair is None:
            found.missing.append("two checkpoints ten steps apart: the type of the weights, and how many numbers did not change")
        return found
    found.shows(weights.STRONG, rounded)
    at = view.schedule.at(view.anchor) if view.schedule is not None else None
    if view.schedule is not None and at is not None and at <= LOW * view.schedule.peak:
        found.supports(weights.HINT, f"at a learning rate of only {at:.3g}", Role.LR, view.anchor, at)
    found.remedy = "Keep float32 master weights, or round stochastically; raising the learning rate only hides it."
    return found


LOW = 0.3
"""Share of its maximum below which the learning rate is that of the late part of a run."""
