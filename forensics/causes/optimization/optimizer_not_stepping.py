"""Gradients are computed, but a group of weights never changes.

What happened
-------------
The optimizer was built before the model was wrapped, holds parameters that are no longer the model's, or misses a
group; or requires_grad is off. Backward works, the logged gradient norm looks alive, and the weights stay where they
are.

How it shows in logs
--------------------
A plateau from the start or from a resume on, with a gradient norm above zero. The parameter norm is constant to the
last digit and the update-to-weight ratio is 0. Two checkpoints ten or more steps apart hold bit-equal tensors of a
trainable group. Scalars alone cannot show a frozen group when other groups still train.

What would contradict it
------------------------
The hashes of every trainable tensor differ between two checkpoints.

Looks like, but is not
----------------------
lr_too_low_or_zero: the logged learning rate is tiny.

bf16_update_stall: most weights, not all, are unchanged and the updates are non-zero.

adam_eps_too_large: weights move, but far too little.

How to confirm
--------------
Compare two checkpoints tensor by tensor (forensics diff), or audit the state (R11): take one step and look at which
tensors changed.

Fix
---
Build the optimizer after FSDP or DDP wrapping, check requires_grad and that every trainable parameter is in exactly
one group, and assert once at start that a step changes every group.

References
----------
TrainCheck, OSDI 2025, arXiv 2506.14813, cases 2 to 4. PyTorch forum thread 84911. accelerate issue 2665.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="optimizer_not_stepping",
    title="The optimizer does not move the weights",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.PARAM_NORM, Role.UW_RATIO),
    replay="compare two checkpoints; take one step and see what changed (R11)",
)

POINTS = 20
"""Logged points from the event on in which nothing may move."""

DIGITS = 5
"""Significant digits a constant norm must show: with fewer, small steps are rounded away in print."""

_KINDS = (EventKind.PLATEAU, EventKind.RESTART, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.NOISE_CHANGE, EventKind.OVERFITTING)


def examine(view: View) -> Examination:
    """Looks for a parameter norm that is constant to the last digit, or updates of exactly zero, with living gradients."""
    found = Examination(view)
    norm, ratio = view.curves.get(Role.PARAM_NORM), next(iter(view.run.all(Role.UW_RATIO)), None)
    still = view.checkpoints.still()
    if norm is None and ratio is None and still is None:
        found.missing.append("the parameter norm with all digits, or the update-to-weight ratio (or two checkpoints: forensics diff)")
        return found
    if view.event.kind not in _KINDS:
        return found
    if still is not None and still.names:
        found.shows(weights.CHECKPOINT if len(still.names) == still.trained else weights.STRONG, still.fact)
    at = view.schedule.at(view.anchor) if view.schedule is not None else None
    if at == 0:
        return found.exclude("the learning rate is zero: the optimizer does what it is told")
    if norm is not None:
        window = norm.values[norm.at(view.anchor) : norm.at(view.anchor) + POINTS]
        if len(window) == POINTS and window.min() == window.max() and _fine(norm, float(window[0])):
            text = f"the parameter norm is {window[0]:.10g} at {POINTS} logged steps from the event on: nothing moves"
            found.supports(weights.STRONG, text, Role.PARAM_NORM, view.anchor, float(window[0]))
        elif len(window) == POINTS and window.min() < window.max():
            return found.exclude("the parameter norm changes from step to step: weights move (a frozen group would not show)")
    if ratio is not None:
        curve = ratio.curve(view.incident.attempts)
        later = curve.values[np.searchsorted(curve.steps, view.anchor) :][:POINTS]
        if len(later) == POINTS and (later == 0).all():
            found.supports(weights.STRONG, f"the update-to-weight ratio is 0 at {POINTS} logged steps from the event on", Role.UW_RATIO, view.anchor, 0.0)
    if found.supporting and view.grad is not None and view.grad.baseline > 0:
        found.supports(weights.HINT, f"the gradient norm is alive ({view.grad.baseline:.3g})", Role.GRAD_NORM, view.anchor)
    found.remedy = "Build the optimizer after wrapping the model, check requires_grad and groups, and assert at start that a step changes every group."
    return found


def _fine(norm: Prepared, value: float) -> bool:
    """The norm is logged with enough digits for a step to show."""
    return value != float(f"{value:.{DIGITS - 2}e}") or len(np.unique(norm.values)) > POINTS
