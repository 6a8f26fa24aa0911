"""Where a loss stops falling."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors.plateau import detect
from forensics.model import EventKind, FloatArray, Severity
from tests.unit.synthetic import curves_of

N = 2000


def noisy(trend: FloatArray, size: float = 0.02, seed: int = 0) -> FloatArray:
    values: FloatArray = trend * np.exp(np.random.default_rng(seed).normal(0, size, len(trend)))
    return values


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 500, [float("nan")] * 500, [3.0, 2.0] * 20])
def test_too_little_to_say(values: list[float]) -> None:
    assert detect(curves_of({"loss": np.array(values)})) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_that_falls_to_the_end_has_none(seed: int) -> None:
    power = 2.0 + 6.0 * (1 + np.arange(N) / 20) ** -0.5
    assert detect(curves_of({"loss": noisy(power, seed=seed)})) == []
    line = 4.0 - 2.0 * np.arange(N) / N
    assert detect(curves_of({"loss": noisy(line, seed=seed)})) == []


def test_heavy_tails_alone_are_no_fall() -> None:
    values = 2.0 * np.exp(0.1 * np.random.default_rng(1).standard_t(2.5, N))
    found = detect(curves_of({"loss": values, "lr": np.full(N, 1e-3)}))
    assert all(e.severity is Severity.INFO for e in found)


def test_the_end_of_a_schedule_is_no_plateau() -> None:
    trend = np.where(np.arange(N) < 1900, 4.0 - np.arange(N) / 1000, 2.1)
    lr = np.where(np.arange(N) < 1900, 1e-3, 0.0) * np.linspace(1, 0.5, N)
    assert detect(curves_of({"loss": noisy(trend), "lr": lr})) == []


def test_a_loss_that_stops_falling() -> None:
    trend = np.maximum(4.0 - 2.0 * np.arange(N) / 1000, 2.0)
    (event,) = detect(curves_of({"loss": noisy(trend)}))
    assert event.kind is EventKind.PLATEAU
    assert event.severity is Severity.INFO
    assert abs(event.onset_step - 1000) < 120
    assert event.p_value is not None
    assert event.p_value < 1e-3


def test_a_loss_that_never_fell_from_the_first_step_on() -> None:
    signals = {"loss": noisy(np.full(N, 4.6), 0.01), "lr": np.full(N, 1e-3)}
    (event,) = detect(curves_of(signals))
    assert event.severity is Severity.WARNING
    assert "never fell" in event.text
    (calm,) = detect(curves_of(signals, config={"algorithm": "simsiam"}))
    assert calm.severity is Severity.INFO


def test_noisy_fine_tuning_that_hardly_moves_is_info() -> None:
    found = detect(curves_of({"loss": noisy(np.full(600, 1.2), 0.2), "lr": np.full(600, 1e-5)}))
    assert [e.severity for e in found] in ([], [Severity.INFO])
