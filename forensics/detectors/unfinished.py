"""The log ends although the run did not."""

from __future__ import annotations

from forensics.detectors.hang import after_last_step
from forensics.model import Absent, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "unfinished"


def detect(curves: Curves) -> list[Event]:
    """A log without an exit record, or with one that reports failure. Exit status is no health signal, so this is info."""
    if after_last_step(curves) is not None:
        return []  # told by the detector of hangs
    notes = curves.run.notes
    exit_code = notes.get("exit_code")
    if notes.get("finished") is not False and exit_code in {None, 0}:
        return []
    loss = curves.run.signal(Role.LOSS)
    last = curves.last_step
    why = f"the process ended with exit code {exit_code}" if exit_code not in {None, 0} else "the log has no exit record: crashed, killed, or still running"
    return [
        Event(
            kind=EventKind.UNFINISHED,
            severity=Severity.INFO,
            confidence=0.6,
            signal="step" if isinstance(loss, Absent) else loss.name,
            onset_step=last,
            peak_step=last,
            end_step=last,
            recovered=False,
            text=why,
        )
    ]
