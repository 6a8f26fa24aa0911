"""Detectors: one file per kind of event. Each is a pure function of prepared curves.

``BUILTIN`` is the explicit list; ``find_incidents`` runs them all over every attempt of a run and joins what belongs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from forensics.detectors import (
    batch_size,
    bursts,
    drop,
    grad_norm,
    hang,
    logit_growth,
    loss_scale,
    lost_state,
    lr_anomaly,
    noise_change,
    non_finite,
    overfitting,
    periodic,
    plateau,
    restart,
    rises,
    throughput,
    unfinished,
)
from forensics.detectors.cost import with_cost
from forensics.detectors.incidents import Incident, group
from forensics.model import Absent, Event, EventKind, NotChecked, Run
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

BUILTIN: tuple[ModuleType, ...] = (
    non_finite,
    rises,
    drop,
    grad_norm,
    noise_change,
    bursts,
    loss_scale,
    lr_anomaly,
    batch_size,
    restart,
    lost_state,
    logit_growth,
    overfitting,
    throughput,
    plateau,
    periodic,
    hang,
    unfinished,
)

__all__ = ["BUILTIN", "Detection", "Incident", "find_incidents"]


@dataclass(frozen=True, slots=True)
class Detection:
    """Incidents in order of onset, and the detectors that failed with the reason. ``curves``: the run as it ended, prepared."""

    incidents: tuple[Incident, ...]
    failed: tuple[NotChecked, ...] = ()
    curves: Curves | None = None


def find_incidents(run: Run, others: Sequence[object] = ()) -> Detection:
    """Incidents of a run, those of attempts that were later replaced included.

    ``others`` are detector modules from elsewhere. A detector that raises is reported in ``failed``; the rest still run.
    """
    failed: dict[str, NotChecked] = {}
    count = max(1, len(run.attempts))
    primary = run.signal(Role.LOSS)
    loss = None if isinstance(primary, Absent) else primary.name
    incidents: list[Incident] = []
    curves = None
    for number in range(1, count + 1):
        attempts = None if number == count else number
        first = run.attempts[number - 1].first_step if number > 1 else None
        curves = Curves(run, attempts)
        findings: list[Event] = []
        for detector in (*BUILTIN, *others):
            name = str(getattr(detector, "NAME", detector))
            try:
                found = detector.detect(curves)  # type: ignore[attr-defined]
            except Exception as problem:  # noqa: BLE001 - one broken detector must not hide what the others see
                failed[name] = NotChecked(f"detector {name}", f"failed: {type(problem).__name__}: {problem}")
                continue
            findings += [e for e in found if first is None or e.onset_step >= first]
        if attempts is not None:
            findings = [e for e in findings if e.kind is not EventKind.UNFINISHED]
        every, length = _extent(curves)
        incidents += [replace(with_cost(incident, curves), attempts=attempts) for incident in group(findings, every, length, loss)]
    return Detection(tuple(sorted(incidents, key=lambda i: i.event.onset_step)), tuple(failed.values()), curves)


def _extent(curves: Curves) -> tuple[float, int]:
    """Logging interval and length in steps of the loss, or of the first signal that has a role."""
    roles = [s.role for s in curves.run.signals if s.role is not None]
    signal = curves.get(Role.LOSS) or next(iter(curves.every(*roles)), None)
    if signal is None or len(signal) == 0:
        return 1.0, 1
    return signal.every, int(signal.steps[-1] - signal.steps[0] + 1)
