"""The optimizer began anew in the middle of the run: its step count in the checkpoints says so, the log may not."""

from __future__ import annotations

from forensics.model import Absent, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.step_counts import count_reset
from forensics.vocabulary import Role

NAME = "lost_state"


def detect(curves: Curves) -> list[Event]:
    """A step count that began again, told once: of the run as it ended."""
    if curves.attempts is not None or not curves.run.checkpoints:
        return []
    saved = sorted((c for c in curves.run.checkpoints if c.step is not None), key=lambda c: c.step or 0)
    reset = count_reset(saved)
    if reset is None or reset.began <= 0:
        return []
    primary = curves.run.signal(Role.LOSS)
    return [
        Event(
            kind=EventKind.RESTART,
            severity=Severity.WARNING,
            confidence=0.95,
            signal="step" if isinstance(primary, Absent) else primary.name,
            onset_step=reset.began,
            peak_step=reset.began,
            recovered=False,
            text=reset.text,
        )
    ]
