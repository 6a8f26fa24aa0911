"""The loss scale fell to its floor and gradients still overflowed: a true explosion, or broken numbers."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="loss_scale_collapse",
    title="The loss scale collapsed",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="replay in float32 (R5): still explodes = optimisation, calm = float16 activations",
)


def examine(view: View) -> Examination:
    """Looks for a scale that fell by 2^6 or more and did not come back."""
    found = Examination(view)
    if view.curves.get(Role.LOSS_SCALE) is None:
        found.missing.append("the loss scale of every step")
        return found
    collapse = view.incident.member(EventKind.LOSS_SCALE_COLLAPSE)
    if collapse is None:
        return found.exclude("the loss scale did not collapse")
    found.supports(weights.STRONG, collapse.text, Role.LOSS_SCALE, collapse.peak_step)
    if view.rise is not None and view.rise.onset_step >= collapse.onset_step:
        found.supports(weights.SUPPORT, f"the loss rose {view.rise.onset_step - collapse.onset_step} steps later", Role.LOSS, view.rise.onset_step)
    if not collapse.recovered:
        found.supports(weights.HINT, "it did not recover within 200 logged steps", Role.LOSS_SCALE, collapse.peak_step)
    found.remedy = "Do not raise the scale: find the explosion (learning rate, attention logits, input), or train in bf16."
    return found
