"""Late training needs smaller steps than the schedule gives."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_decay_too_slow",
    title="The learning rate decays too slowly",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LR,),
    replay="replay with 0.66 to 0.9 of the learning rate (R6)",
)


def examine(view: View) -> Examination:
    """Looks for a slow rise of the loss in the stable or decay phase."""
    found = Examination(view)
    schedule = view.schedule
    if view.event.kind not in {EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.LEVEL_SHIFT} or view.rise is None:
        return found
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    phase = schedule.phase(view.anchor)
    if phase in {"warmup", "rewarm", "zero"}:
        return found.exclude(f"the onset is in the {phase} phase, not in the decay")
    if view.event.kind is EventKind.DRIFT:
        found.supports(weights.REQUIRED, "the loss drifted up without any sharp step", Role.LOSS, view.event.peak_step)
    found.supports(weights.HINT, f"in the {phase} phase, at a learning rate of {schedule.at(view.anchor) or 0.0:.3g}", Role.LR, view.anchor)
    grad = view.grad
    if grad is not None and grad.settled > 1.2:
        found.supports(weights.SUPPORT, f"the gradient norm drifted up with it, x{grad.settled:.2f}", Role.GRAD_NORM)
    elif grad is not None and grad.settled < 1.05:
        found.contradicts(-0.5, "the gradient norm stayed flat", Role.GRAD_NORM)
    found.missing.append("activation norms per block, which drift before the loss does in this case")
    found.remedy = "Lower the learning rate now, to 0.66 to 0.9 of its value, rather than restarting; a published 175B run calmed this way."
    return found
