"""The step is at the edge of what the curvature allows: the loss swings but may go on falling."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="sharpness_edge",
    title="Training at the edge of stability",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS,),
    replay="measure the curvature against 2/lr (R15); half the learning rate calms at once (R6)",
)


def examine(view: View) -> Examination:
    """Looks for a swinging loss, or a spike right after the learning rate rose."""
    found = Examination(view)
    if view.event.kind is EventKind.OSCILLATION:
        found.supports(weights.REQUIRED, "the loss swings with growing amplitude", Role.LOSS, view.onset)
        if view.grad is not None and view.grad.settled > 1.2:
            found.supports(weights.HINT, f"the gradient norm swings with it, x{view.grad.settled:.2f}", Role.GRAD_NORM)
    elif view.rise is not None and view.schedule is not None and view.schedule.phase(view.anchor) in {"warmup", "peak"}:
        found.supports(weights.HINT, "the loss rose while the learning rate was rising", Role.LR, view.anchor)
    else:
        return found
    found.missing.append("the largest curvature (R15 measures it by power iteration)")
    found.remedy = "Divide the learning rate by 1.5 to 2 or warm up longer; leave it alone if the long-term trend still falls."
    return found
