"""Detectors: one file per kind of event. Each is a pure function of prepared curves.

``BUILTIN`` is the explicit list; ``find_incidents`` runs them all over every attempt of a run and joins what belongs together.
"""

from __future__ import annotations

from types import ModuleType

from forensics.detectors import (
    batch_size,
    grad_norm,
    logit_growth,
    loss_scale,
    lr_anomaly,
    noise_change,
    non_finite,
    overfitting,
    restart,
    rises,
    unfinished,
)
from forensics.detectors.incidents import Incident, group
from forensics.model import Absent, Event, Run
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

BUILTIN: tuple[ModuleType, ...] = (
    non_finite,
    rises,
    grad_norm,
    noise_change,
    loss_scale,
    lr_anomaly,
    batch_size,
    restart,
    logit_growth,
    overfitting,
    unfinished,
)

__all__ = ["BUILTIN", "Incident", "find_incidents"]


def find_incidents(run: Run) -> list[Incident]:
    """Incidents of a run in order of onset, those of attempts that were later replaced included."""
    count = max(1, len(run.attempts))
    findings: list[Event] = []
    every, length = 1.0, 1
    for number in range(1, count + 1):
        curves = Curves(run, None if number == count else number)
        first = run.attempts[number - 1].first_step if run.attempts else None
        for detector in BUILTIN:
            for event in detector.detect(curves):
                if number == 1 or first is None or event.onset_step >= first:
                    findings.append(event)
        loss = curves.get(Role.LOSS) or next(iter(curves.every(*[s.role for s in run.signals if s.role])), None)
        if loss is not None and len(loss):
            every, length = loss.every, int(loss.steps[-1] - loss.steps[0] + 1)
    primary = run.signal(Role.LOSS)
    return group(_unique(findings), every, length, None if isinstance(primary, Absent) else primary.name)


def _unique(findings: list[Event]) -> list[Event]:
    seen: dict[tuple[str, str, int], Event] = {}
    for event in findings:
        seen.setdefault((event.kind, event.signal, event.onset_step), event)
    return list(seen.values())
