"""An operation left its domain: log of zero, a division by a vanishing norm."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="numeric_domain_error",
    title="An operation left its domain",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="guard the operation (R14); higher precision changes nothing (R5)",
)


def examine(view: View) -> Examination:
    """Looks for a NaN without any growth before it; the log alone cannot tell it from a NaN in the input."""
    found = Examination(view)
    broken = view.incident.member(EventKind.NON_FINITE)
    if broken is None:
        return found
    if view.rise is not None and view.rise.onset_step < broken.onset_step:
        return found.exclude("the loss was already rising before the NaN")
    if view.incident.member(EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE) is not None:
        return found.exclude("the loss scale fell in a burst: the overflow is in the scaled gradients")
    found.supports(weights.SUPPORT, f"{broken.text}, without any growth before it", Role.LOSS, broken.onset_step)
    found.missing.append("the first non-finite module (a replay's microscope names it)")
    found.remedy = "Guard log, sqrt, division and normalisation with an epsilon inside the operation."
    return found
