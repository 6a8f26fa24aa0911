"""Costs of incidents, as they stand in the case."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import find_incidents
from forensics.detectors.cost import union
from forensics.model import Attempt, EventKind
from forensics.pipeline import build_case
from tests.unit.synthetic import bump, falling, run_of, signal_of


def test_intervals_that_overlap_count_once() -> None:
    assert union([]) == 0.0
    assert union([(0.0, 10.0), (5.0, 12.0), (20.0, 21.0)]) == 13.0


def test_a_gradient_alone_costs_nothing_of_the_loss() -> None:
    norm = np.exp(np.random.default_rng(0).normal(0, 0.1, 900))
    norm[500] *= 50
    incidents = find_incidents(run_of({"loss": falling(900, 0), "grad_norm": norm})).incidents
    (incident,) = [i for i in incidents if i.event.kind is EventKind.GRAD_NORM_SURGE]
    assert incident.event.lost_steps is None
    assert incident.event.height_nats is None


def test_values_that_are_no_numbers_are_lost() -> None:
    values = falling(900, 1)
    values[600:] = np.nan
    (incident,) = find_incidents(run_of({"loss": values})).incidents
    assert incident.event.lost_steps == 300


def test_steps_done_twice_are_lost() -> None:
    steps = np.concatenate([np.arange(600), np.arange(500, 900)])
    signal = signal_of("loss", falling(900, 2)[steps], steps, starts=(0, 600))
    case = build_case(run_of({"loss": signal}, attempts=(Attempt(0, 599), Attempt(500, 899, 500))))
    (restart,) = [e for e in case.events if e.kind is EventKind.RESTART]
    assert restart.lost_steps == 100
    assert case.run.stability_score.lost_steps == 100


def test_a_spike() -> None:
    values = falling(900, 3) * bump(900, 600, 1.0, 10)
    (incident,) = find_incidents(run_of({"loss": values})).incidents
    event = incident.event
    assert event.end_step is not None
    assert event.recovery_steps == event.end_step - event.onset_step
    assert event.height_nats == pytest.approx(2.0, rel=0.2)
    assert event.area is not None
    assert 5 * event.height_nats < event.area < 15 * event.height_nats
    assert event.lost_steps is not None
    assert event.lost_steps <= event.recovery_steps
