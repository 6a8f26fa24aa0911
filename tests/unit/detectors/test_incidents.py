"""One incident, one event."""

from __future__ import annotations

import numpy as np

from forensics.detectors import find_incidents
from forensics.detectors.incidents import group
from forensics.model import Attempt, Event, EventKind, Severity
from tests.unit.synthetic import bump, falling, run_of, signal_of

N = 1500
STEPS = np.arange(N)


def event(kind: EventKind, onset: int, end: int | None = None, severity: Severity = Severity.WARNING, signal: str = "loss") -> Event:
    return Event(kind, severity, 0.9, signal, onset, onset, end_step=end, recovered=end is not None)


def test_nothing() -> None:
    assert group([], 1.0, 0) == []


def test_far_apart_stays_apart() -> None:
    found = group([event(EventKind.SPIKE, 100, 105), event(EventKind.SPIKE, 900, 905)], 1.0, N)
    assert [i.event.onset_step for i in found] == [100, 900]


def test_near_findings_are_one_and_the_loss_names_it() -> None:
    findings = [
        event(EventKind.LR_ANOMALY, 100, 104, signal="lr"),
        event(EventKind.SPIKE, 102, 110),
        event(EventKind.GRAD_NORM_SURGE, 101, 105, signal="grad_norm"),
    ]
    (incident,) = group(findings, 1.0, N, "loss")
    assert incident.event.kind is EventKind.SPIKE
    assert incident.event.onset_step == 100
    assert [m.signal for m in incident.members] == ["lr", "grad_norm", "loss"]
    assert incident.member(EventKind.LR_ANOMALY) is findings[0]
    assert incident.member(EventKind.DRIFT) is None


def test_near_is_counted_in_logged_points() -> None:
    findings = [event(EventKind.LR_ANOMALY, 100, 100, signal="lr"), event(EventKind.SPIKE, 190, 200)]
    assert len(group(findings, 10.0, 10 * N)) == 1
    assert len(group([event(EventKind.SPIKE, 100, 101), event(EventKind.SPIKE, 190, 200)], 1.0, N)) == 2


def test_the_worst_severity_counts() -> None:
    (incident,) = group([event(EventKind.SPIKE, 100, 105), event(EventKind.NON_FINITE, 103, None, Severity.CRITICAL)], 1.0, N, "loss")
    assert incident.event.severity is Severity.CRITICAL
    assert incident.event.kind is EventKind.NON_FINITE


def test_a_divergence_swallows_what_follows() -> None:
    found = group([event(EventKind.DIVERGENCE, 500, None, Severity.CRITICAL), event(EventKind.GRAD_NORM_SURGE, 1200, 1210, signal="grad_norm")], 1.0, N, "loss")
    assert len(found) == 1


def test_info_alone_stays_info() -> None:
    (incident,) = group([event(EventKind.GRAD_NORM_SURGE, 100, 105, Severity.INFO)], 1.0, N)
    assert incident.event.severity is Severity.INFO


def test_info_beside_an_alarm_is_told_with_it() -> None:
    found = group([event(EventKind.SPIKE, 100, 110), event(EventKind.GRAD_NORM_SURGE, 101, 105, Severity.INFO, "grad_norm")], 1.0, N, "loss")
    assert len(found) == 1
    assert len(found[0].members) == 2


def test_a_real_learning_rate_spike_is_one_event() -> None:
    lr = np.full(N, 1e-3)
    lr[700:704] *= 30
    grad_norm = np.exp(np.random.default_rng(0).normal(0, 0.1, N)) * bump(N, 701, 6, 5)
    run = run_of({"loss": falling(N, 1) * bump(N, 701, 0.8, 20), "grad_norm": grad_norm, "lr": lr})
    alarms = [i for i in find_incidents(run).incidents if i.event.severity is not Severity.INFO]
    assert len(alarms) == 1
    assert alarms[0].event.onset_step == 700
    assert {m.signal for m in alarms[0].members} == {"loss", "grad_norm", "lr"}


def test_an_event_of_an_attempt_that_was_replaced_is_kept() -> None:
    first = falling(800, 1)
    first[700:] = np.nan
    second = falling(N, 2)[600:]
    loss = signal_of("loss", np.concatenate([first, second]), np.concatenate([np.arange(800), np.arange(600, N)]), starts=(0, 800))
    run = run_of({"loss": loss}, attempts=[Attempt(0, 799), Attempt(600, N - 1, 599)])
    found = {(member.kind, i.attempts) for i in find_incidents(run).incidents for member in i.members}
    assert (EventKind.NON_FINITE, 1) in found
    assert (EventKind.RESTART, None) in found
    assert (EventKind.NON_FINITE, None) not in found
