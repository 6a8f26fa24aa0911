"""One spike of the gradient stays in the moments and goes on hurting."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="momentum_contamination",
    title="A gradient spike stayed in the optimizer's moments",
    family="optimization",
    part=Part.AMPLIFIER,
    needs=(Role.GRAD_NORM, Role.LOSS),
    replay="replay with the moments zeroed after the spike: the run recovers faster (R8)",
)

SPIKE = 50.0
"""Factor of the gradient that contaminates the moments for long (catalogue)."""


def examine(view: View) -> Examination:
    """Looks for a very large gradient followed by a loss that stays up after the gradient is normal."""
    found = Examination(view)
    grad, loss = view.grad, view.loss
    if grad is None or loss is None:
        return found
    if grad.factor < SPIKE:
        return found.exclude(f"no gradient of {SPIKE:g} times the usual came before")
    found.supports(weights.SUPPORT, f"the gradient norm was {grad.factor:.3g} times its level at step {grad.peak_step}", Role.GRAD_NORM, grad.peak_step)
    if view.rise is not None and view.rise.onset_step > grad.peak_step:
        found.supports(weights.SUPPORT, f"the loss rose {view.rise.onset_step - grad.peak_step} steps after the gradient was normal again", Role.LOSS)
    found.remedy = "Zero the moments after such a step, skip steps whose gradient is far out of range, or clip per coordinate against v."
    return found
