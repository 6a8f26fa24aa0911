"""The batch size changed and the learning rate did not follow.

What happened
-------------
The noise of the gradient depends on the batch size, and the best step depends on the noise. A smaller batch at the
old rate is too noisy for it; a larger one wastes steps or, scaled too far, overshoots. For Adam the rate goes with
the square root of the batch size, for SGD with the batch size itself.

How it shows in logs
--------------------
The logged batch size changes by a factor of 1.2 or more around the onset, and the learning rate does not change
within 25 % of what the rule asks for. The gradient norm settles at a new level, close to the factor^(-1/2). Where no
batch size is logged, a loss that turns noisier at one step together with a gradient norm that settles above 1.4 times
its level is the only trace, and weak.

What would contradict it
------------------------
A logged batch size that did not change excludes it. A learning rate that was scaled by the rule speaks against it.
Ramps in small steps are planned and are not alarmed.

Looks like, but is not
----------------------
loss_mask_error: the same picture with a constant batch size: fewer tokens are counted.

grad_accum_normalisation: a factor in loss or gradient that equals the accumulation.

lr_rewarm_or_jump: the rate moved, not the batch.

batch_noise_small: noise from the start on.

How to confirm
--------------
Replay the steps after the change with the old batch size (R3), or with the learning rate scaled by the rule (R6).

Fix
---
Scale the rate by sqrt(k) for a batch k times as large with Adam, by k with SGD, and re-warm over 100 to 500 steps.
Ramp in small increments (BLOOM: 16 per step). With Adam the best rate rises with the batch size only up to a point,
then falls again.

References
----------
Common practice. The batch "surge" study of 2024, arXiv 2405.14578. Reported: Malladi et al. 2022.

"""

from __future__ import annotations

import math

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="batch_size_change_unscaled",
    title="The batch size changed, the learning rate did not",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.BATCH_SIZE,),
    replay="replay with the old batch size (R3) or a scaled learning rate (R6)",
)

REACH = 50
"""Steps between the change and its event (catalogue)."""

MATCH = 0.25
"""A learning rate within this share of the expected one was scaled."""


def examine(view: View) -> Examination:
    """Looks for a change of the batch size at the onset, and for what a smaller batch does where none is logged."""
    found = Examination(view)
    change = view.incident.member(EventKind.BATCH_SIZE_CHANGE)
    if view.curves.get(Role.BATCH_SIZE) is None:
        _unlogged(found, view)
        return found
    if change is None or change.baseline is None or change.peak is None:
        return found.exclude("the batch size did not change around the onset")
    ratio = change.peak / change.baseline
    text = f"the batch size went from {change.baseline:g} to {change.peak:g} at step {change.onset_step}"
    found.supports(weights.STRONG, text, Role.BATCH_SIZE, change.onset_step)
    schedule = view.schedule
    if schedule is not None:
        before, after = schedule.at(change.onset_step - 1), schedule.at(change.onset_step)
        expected = math.sqrt(ratio) if view.settings.adaptive is not False else ratio
        if before and after:
            scaled = abs(after / before / expected - 1) <= MATCH
            kept = abs(after / before - 1) < 0.01
            how = f"stayed at {after:.3g}" if kept else f"went from {before:.3g} to {after:.3g}, x{after / before:.2f}"
            text = f"the learning rate {how}; for this batch size it should have been multiplied by {expected:.2f}"
            if scaled:
                found.contradicts(weights.AGAINST, text, Role.LR, change.onset_step)
            else:
                found.supports(weights.SUPPORT, text, Role.LR, change.onset_step)
    grad = view.grad
    if grad is not None and grad.settled > 0 and 0.5 < math.log(max(grad.settled, 1e-9)) / (-0.5 * math.log(ratio)) < 2:
        found.supports(weights.SUPPORT, f"the gradient norm moved by x{grad.settled:.2f}, as noise does with the root of the batch size", Role.GRAD_NORM)
    rule, factor = ("the root of its ratio", math.sqrt(ratio)) if view.settings.adaptive is not False else ("the same ratio", ratio)
    found.remedy = f"Multiply the learning rate by {rule} ({factor:.2f}) when the batch size changes, and re-warm over 100 to 500 steps."
    return found


def _unlogged(found: Examination, view: View) -> None:
    noisier = view.incident.member(EventKind.NOISE_CHANGE)
    found.missing.append("the batch size and the number of valid tokens of every step")
    fewer = signs.fewer_averaged(view)
    if fewer is None and (noisier is None or view.event.kind is not EventKind.NOISE_CHANGE):
        return
    text, step = (noisier.text, noisier.onset_step) if noisier is not None else (f"the noise of the loss grew {fewer:.1f} times", view.anchor)
    found.supports(weights.SUPPORT, text, Role.LOSS, step)
    if view.grad is not None and view.grad.lasting >= 1.4:
        if view.rise is None:
            found.supports(weights.HINT, "the level of the loss stayed where it was", Role.LOSS, step)
        found.supports(weights.REQUIRED, f"the gradient norm rose to x{view.grad.lasting:.2f} and stayed, as with a smaller batch", Role.GRAD_NORM)
