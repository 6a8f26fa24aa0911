"""What repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors.periodic import detect
from forensics.model import EventKind, FloatArray, Severity
from forensics.primitives.period import find_period
from forensics.primitives.robust import LONG
from tests.unit.synthetic import curves_of, falling

N = 3000


def swinging(period: int, size: float = 0.1, points: int = N) -> FloatArray:
    values: FloatArray = falling(points, 1) * np.exp(size * np.sin(2 * np.pi * np.arange(points) / period))
    return values


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 500, [float("nan")] * 500])
def test_too_little_to_say(values: list[float]) -> None:
    assert detect(curves_of({"loss": np.array(values)})) == []
    assert find_period(np.array(values)[np.isfinite(values)]) is None


@pytest.mark.parametrize("seed", range(10))
def test_noise_has_no_period(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert detect(curves_of({"loss": falling(N, seed)})) == []
    assert detect(curves_of({"loss": falling(N, seed, tail=2.5)})) == []
    walk = np.zeros(N)
    for i in range(1, N):
        walk[i] = 0.97 * walk[i - 1] + rng.normal(0, 0.02)
    assert detect(curves_of({"loss": 2 * np.exp(walk)})) == []


def test_two_waves_are_no_period() -> None:
    assert detect(curves_of({"loss": swinging(1500)})) == []


@pytest.mark.parametrize("period", [7, 50, 300])
def test_a_swing(period: int) -> None:
    (event,) = detect(curves_of({"loss": swinging(period)}))
    assert (event.kind, event.severity) == (EventKind.PERIODIC, Severity.INFO)
    assert int(event.text.split("every ")[1].split()[0]) == pytest.approx(period, rel=0.02)
    assert event.onset_step == 0
    assert event.p_value is not None
    assert event.p_value < 1e-6


def test_where_it_begins() -> None:
    values = np.where(np.arange(N) < 1500, falling(N, 1), swinging(40, 0.3))
    (event,) = detect(curves_of({"loss": values}))
    assert abs(event.onset_step - 1500) <= 3 * 40


def test_epochs_are_named() -> None:
    saw = np.exp(-0.2 * (np.arange(N) % 250) / 250)
    (event,) = detect(curves_of({"loss": falling(N, 1) * saw, "epoch": np.arange(N) / 250}))
    assert event.text.endswith("an epoch has 250 steps")


def test_step_times_with_pauses_for_checkpoints() -> None:
    times = np.exp(np.random.default_rng(0).normal(0, 0.02, N))
    times[::50] *= 1.5
    times[1::50] *= 1.4
    times[2::50] *= 1.4
    assert [e.signal for e in detect(curves_of({"step_time": times}))] in ([], ["step_time"])


@pytest.mark.parametrize("period", [40, 20_000])
def test_long_curves(period: int) -> None:
    n = 4 * LONG
    u = 0.05 * np.random.default_rng(0).normal(size=n) + 0.1 * np.sin(2 * np.pi * np.arange(n) / period)
    found = find_period(u)
    assert found is not None
    assert found.points == pytest.approx(period, rel=0.02)
