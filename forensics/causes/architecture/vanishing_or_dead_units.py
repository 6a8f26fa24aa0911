"""Layers do not learn because their gradients or their outputs are zero.

What happened
-------------
Saturated activations, ReLU units that never fire, or a bad initialisation shrink the gradient layer by layer. Early
layers receive nothing.

How it shows in logs
--------------------
A plateau from the start. The gradient norm of early layers is below 1e-3 of that of late ones, or more than 0.7 of a
layer's activations are zero for 500 steps or more.

What would contradict it
------------------------
Early and late gradient norms are of the same size.

Looks like, but is not
----------------------
fp16_underflow: only in float16.

optimizer_not_stepping: gradients are fine.

lr_too_low_or_zero: all layers alike.

How to confirm
--------------
Measure gradients per layer and the share of zeros (the replay's microscope), then swap activation or initialisation
(R14).

Fix
---
He or Xavier initialisation, normalisation layers, leaky activations, residual connections.

References
----------
DeepDiagnosis 2021, arXiv 2112.04036. Reported: AutoTrainer's fault classes.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import by_depth, named
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="vanishing_or_dead_units",
    title="Gradients vanish or units are dead",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.GRAD_NORM_GROUP,),
    replay="another activation or initialisation (R14)",
)

VANISHED = 1e-3
"""Share of the last layer's gradient norm below which the first layer receives nothing (catalogue)."""

EVEN = 0.1
"""Share from which early and late gradients are of the same size."""

DEAD = 0.7
"""Share of activations that are exactly zero from which a layer is dead (catalogue)."""

POINTS = 100
"""Logged points before the event that are looked at (catalogue: 500 steps)."""

_KINDS = (EventKind.PLATEAU, EventKind.DRIFT, EventKind.LEVEL_SHIFT)


LESS = 0.8
"""Factor to which the gradient norm of a model without living units has fallen at least, although the loss is far up."""

_SILENT = (*_KINDS, EventKind.DIVERGENCE)


def examine(view: View) -> Examination:
    """Compares gradient norms of the first and the last layer, and looks for zero activations."""
    found = Examination(view)
    layers = by_depth(view.curves.every(Role.GRAD_NORM_GROUP))
    zeros = (*named(view, "dead"), *named(view, "zero", "act"))
    _silent(found, view)
    if not layers and not zeros:
        found.missing.append("gradient norms of the layers, or the share of activations that are exactly zero")
        return found
    if view.event.kind not in _KINDS:
        return found
    for share in zeros:
        window = share.values[max(0, share.at(view.anchor) - POINTS) : share.at(view.anchor)]
        if len(window) and DEAD < float(np.median(window)) <= 1:
            found.supports(weights.REQUIRED, f"{np.median(window):.0%} of the activations are zero ({share.name})", share.name, view.anchor)
            break
    if layers:
        first, last = (float(np.median(s.values[max(0, s.at(view.anchor) - POINTS) : s.at(view.anchor) + 1])) for s in (layers[0], layers[-1]))
        ratio = first / last if last > 0 else 1.0
        if ratio < VANISHED:
            text = f"the gradient norm is {first:.2g} in the first layer and {last:.2g} in the last ({layers[0].name}, {layers[-1].name})"
            found.supports(weights.REQUIRED, text, Role.GRAD_NORM_GROUP, view.anchor)
        elif ratio > EVEN and not found.supporting:
            return found.exclude(f"first and last layer have gradients of the same size ({first:.2g} and {last:.2g})")
    if view.settings.half_precision and found.supporting:
        found.contradicts(weights.DOUBT, "the run is in float16, where small gradients are flushed to zero")
    found.remedy = "Use He or Xavier initialisation, normalisation layers, leaky activations or residual connections."
    return found


def _silent(found: Examination, view: View) -> None:
    """The loss is where it was before training and stays there: outputs no longer depend on the inputs."""
    if view.event.kind not in _SILENT or not (signs.back_at_start(view) and signs.nothing_relearned(view)):
        return
    found.supports(weights.REQUIRED, "the loss jumped to where it stood before training and stayed there: nothing is told apart any more", Role.LOSS)
    grad = view.grad
    if grad is not None and grad.settled <= LESS:
        text = f"the gradient norm fell to {grad.settled:.2f} of its level although the loss is far up: little of the model still receives one"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM)
    if grad is not None and grad.factor >= signs.SURGE:
        found.contradicts(weights.DOUBT, f"the gradient norm went to {grad.factor:.3g} times its level first: what did that is the cause", Role.GRAD_NORM)
    elif grad is not None and grad.settled >= 2:
        found.contradicts(weights.DOUBT, f"the gradient norm is {grad.settled:.2f} times its level", Role.GRAD_NORM)
    if signs.lr_above_usual(view):
        found.contradicts(weights.AGAINST, "the learning rate is far above the usual: steps that are too large kill units", Role.LR, view.anchor)
    elif view.schedule is not None and view.schedule.phase(view.anchor) == "warmup":
        found.contradicts(weights.DOUBT, "the learning rate was still climbing: steps that were too large kill units", Role.LR, view.anchor)
    if view.jump is not None:
        found.contradicts(weights.DOUBT, "the learning rate had just jumped: too large a step is what killed them", Role.LR, view.jump.step)
    found.remedy = f"Go back to a checkpoint before step {view.anchor} and find the step that was too large; look at the share of zero activations."
