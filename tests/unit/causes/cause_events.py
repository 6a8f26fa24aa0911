"""Asks a rule about an event that a test names itself: for slow causes whose event is found at another place, or is only info."""

from __future__ import annotations

from types import ModuleType

from cause_runs import AT

from forensics.causes.interface import Examination
from forensics.correlate.view import View
from forensics.detectors import Incident
from forensics.model import Absent, Event, EventKind, Run, Severity
from forensics.primitives.curves import Curves


def event(run: Run, kind: EventKind, step: int = AT, **more: object) -> Event:
    """An event of the loss, or of the first signal where no loss is logged."""
    loss = run.signal("loss")
    signal = run.signals[0].name if isinstance(loss, Absent) else loss.name
    known: dict[str, object] = {"signal": signal, "peak_step": step, **more}
    return Event(kind=kind, severity=Severity.WARNING, confidence=0.9, onset_step=step, **known)  # type: ignore[arg-type]


def ask(rule: ModuleType, run: Run, kind: EventKind, step: int = AT, *others: Event) -> Examination:
    """What the rule says about one event, alone but for the events given with it."""
    main = event(run, kind, step)
    incident = Incident(main, (main,))
    incidents = (incident, *(Incident(e, (e,)) for e in others))
    found: Examination = rule.examine(View(run, Curves(run), incident, incidents))
    return found
