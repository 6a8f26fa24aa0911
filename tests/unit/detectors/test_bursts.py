"""A loss that comes in bursts for a while."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors.bursts import detect
from forensics.model import EventKind, FloatArray, Severity
from tests.unit.synthetic import curves_of, falling

N = 800


def near_zero(seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    values: FloatArray = np.exp(rng.normal(0, 0.4, N)) * (0.005 + 2 * np.exp(-np.arange(N) / 20))
    return values


def bursting(seed: int = 0) -> FloatArray:
    values = near_zero(seed)
    values[400:480] *= np.random.default_rng(seed + 1).uniform(10, 120, 80)
    return values


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 500, [float("nan")] * 500])
def test_too_little_to_say(values: list[float]) -> None:
    assert detect(curves_of({"loss": np.array(values)})) == []


@pytest.mark.parametrize("seed", range(10))
def test_healthy_losses_have_none(seed: int) -> None:
    assert detect(curves_of({"loss": near_zero(seed)})) == []
    assert detect(curves_of({"loss": falling(N, seed, tail=2.5)})) == []


def test_a_smooth_bump_is_no_burst() -> None:
    values = near_zero() + 0.5 * np.exp(-(((np.arange(N) - 440) / 20.0) ** 2))
    assert detect(curves_of({"loss": values})) == []


@pytest.mark.parametrize("seed", range(4))
def test_bursts(seed: int) -> None:
    (event,) = detect(curves_of({"loss": bursting(seed)}))
    assert (event.kind, event.severity) == (EventKind.OSCILLATION, Severity.WARNING)
    assert abs(event.onset_step - 400) <= 8
    assert event.end_step is not None
    assert abs(event.end_step - 480) <= 8
    assert event.p_value is not None
    assert event.p_value < 0.01


def test_self_supervised_bursts_are_info() -> None:
    (event,) = detect(curves_of({"loss": bursting()}, config={"method": "byol"}))
    assert event.severity is Severity.INFO
