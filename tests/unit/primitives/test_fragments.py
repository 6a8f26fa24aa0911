"""Rises among a handful of points."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import find_incidents
from forensics.model import EventKind, Severity
from forensics.primitives.fragments import fragment_rises
from tests.unit.synthetic import run_of, signal_of


def rises(values: list[float], steps: list[int] | None = None) -> list[tuple[int, int]]:
    at = np.arange(len(values)) if steps is None else np.array(steps)
    return [(r.onset, r.peak) for r in fragment_rises(at, np.log(np.array(values, dtype=np.float64)))]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 9.0], [2.0] * 12])
def test_too_little_to_say(values: list[float]) -> None:
    assert rises(values) == []


def test_noise_of_small_batches_is_no_jump() -> None:
    rng = np.random.default_rng(0)
    found = [rises(np.exp(rng.normal(0, 0.25, n)).tolist()) for n in (3, 4, 6, 8, 12) for _ in range(100)]
    assert sum(bool(f) for f in found) <= 5


def test_the_start_of_training_is_no_jump() -> None:
    assert rises([11.0, 9.5, 8.1, 7.2, 7.4, 6.6]) == []


def test_a_long_curve_is_not_a_fragment() -> None:
    assert rises([3.0] * 20 + [9.0]) == []


def test_the_last_of_three_points() -> None:
    assert rises([3.06, 3.11, 7.71]) == [(2, 2)]


def test_a_climb_from_the_first_point() -> None:
    assert rises([6.4, 6.6, 7.3, 9.1, 10.2]) == [(1, 4)]


def test_stretches_far_apart_are_not_compared() -> None:
    steps = [6900, 6910, 6920, 9000, 9001, 9002]
    assert rises([6.4, 6.3, 6.4, 2.1, 2.2, 2.1], steps) == []
    assert rises([3.4, 3.3, 3.4, 6.9, 7.0, 6.9], steps) == []
    assert rises([3.4, 3.3, 3.4, 2.1, 2.1, 6.9], steps) == [(5, 5)]


def test_it_becomes_an_event() -> None:
    run = run_of({"loss": signal_of("loss", [3.06, 3.11, 7.71], [11446, 11447, 11448])})
    (incident,) = find_incidents(run).incidents
    assert (incident.event.kind, incident.event.onset_step) == (EventKind.SPIKE, 11448)
    assert incident.event.severity is not Severity.INFO
