"""The log, not the training: steps written twice, units that changed, curves that were merged."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Attempt, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="metric_artifact",
    title="An artefact of logging",
    family="resume",
    part=Part.TRIGGER,
    replay="none: read the raw logs again",
)


def examine(view: View) -> Examination:
    """Looks for steps that were written twice at the onset."""
    found = Examination(view)
    restart = next((m for m in view.incident.members if m.kind is EventKind.RESTART and "written twice" in m.text), None)
    if restart is None:
        if isinstance(view.resume, Attempt):
            found.supports(weights.HINT, f"another process began to write at step {view.resume.first_step}", Role.LOSS, view.resume.first_step)
        return found
    found.supports(weights.STRONG, restart.text, Role.LOSS, restart.onset_step)
    if view.rise is None:
        found.supports(weights.HINT, "the loss itself shows no event there", Role.LOSS, restart.onset_step)
    found.remedy = "Read the two passes apart (this tool does); when plotting, keep the later value of each step, and log a run id per attempt."
    return found
