"""The scaler looks for its scale: a few skipped steps at the start, or one per growth interval. Harmless."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="scale_calibration_skips",
    title="Ordinary calibration of the loss scale",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="none needed",
)


def examine(view: View) -> Examination:
    """Looks for a fall of the scale in the first steps that touched nothing else."""
    found = Examination(view)
    burst = view.incident.member(EventKind.LOSS_SCALE_DROP)
    if burst is None:
        return found
    if burst.severity is not Severity.INFO or view.rise is not None:
        return found.exclude("a burst in mid-run, or with an effect on the loss, is no calibration")
    found.supports(weights.STRONG, burst.text, Role.LOSS_SCALE, burst.onset_step)
    found.remedy = "Nothing: a scale of 2^32 needs 16 halvings to reach 2^16."
    return found
