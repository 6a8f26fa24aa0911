"""The batch size changed and the learning rate did not follow."""

from __future__ import annotations

import math

from forensics.causes.interface import CauseInfo, Examination, View, weights
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
            text = f"the learning rate went from {before:.3g} to {after:.3g}; the batch size asked for a factor of {expected:.2f}"
            if scaled:
                found.contradicts(weights.AGAINST, text, Role.LR, change.onset_step)
            else:
                found.supports(weights.SUPPORT, text, Role.LR, change.onset_step)
    grad = view.grad
    if grad is not None and grad.settled > 0 and 0.5 < math.log(max(grad.settled, 1e-9)) / (-0.5 * math.log(ratio)) < 2:
        found.supports(weights.SUPPORT, f"the gradient norm moved by x{grad.settled:.2f}, as noise does with the root of the batch size", Role.GRAD_NORM)
    rule = "its square root" if view.settings.adaptive is not False else "the same factor"
    found.remedy = f"Scale the learning rate with {rule} ({ratio:.3g}) when the batch size changes, and re-warm over 100 to 500 steps."
    return found


def _unlogged(found: Examination, view: View) -> None:
    noisier = view.incident.member(EventKind.NOISE_CHANGE)
    found.missing.append("the batch size and the number of valid tokens of every step")
    if noisier is None or view.event.kind is not EventKind.NOISE_CHANGE:
        return
    found.supports(weights.SUPPORT, noisier.text, Role.LOSS, noisier.onset_step)
    if view.grad is not None and view.grad.settled >= 1.4:
        found.supports(weights.SUPPORT, f"the gradient norm rose to x{view.grad.settled:.2f} and stayed, as with a smaller batch", Role.GRAD_NORM)
