from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors.throughput import detect
from forensics.model import Event, FloatArray, Run, Severity
from forensics.primitives.curves import Curves
from tests.unit.synthetic import signal_of

N = 800


def found(name: str, values: FloatArray) -> list[Event]:
    role = "step_time" if name == "step_time" else "tput"
    return detect(Curves(Run("x", "x", (), (signal_of(name, values, np.arange(len(values)), role=role),))))


def noise(size: float = 0.01) -> FloatArray:
    return np.asarray(np.exp(np.random.default_rng(3).normal(0, size, N)), dtype=np.float64)


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 300, [float("nan")] * 300])
def test_too_little_to_say(values: list[float]) -> None:
    assert found("step_time", np.array(values, dtype=np.float64)) == []


def test_a_pause_is_no_slowdown() -> None:
    values = noise()
    values[400:410] *= 5
    assert found("step_time", values) == []


def test_a_faster_run_is_no_slowdown() -> None:
    values = noise()
    values[400:] *= 0.8
    assert found("step_time", values) == []


@pytest.mark.parametrize(("name", "factor"), [("step_time", 1.1), ("tokens_per_sec", 1 / 1.1)])
def test_a_lasting_slowdown(name: str, factor: float) -> None:
    values = noise()
    values[400:] *= factor
    (event,) = found(name, values)
    assert abs(event.onset_step - 400) <= 2
    assert event.severity is Severity.INFO
    assert "10% longer" in event.text
