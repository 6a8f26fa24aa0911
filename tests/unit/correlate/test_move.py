from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate.move import Move, measure
from forensics.model import FloatArray
from forensics.primitives.prepared import prepare
from tests.unit.synthetic import signal_of

N = 1000
STEPS = np.arange(N)


def moved(values: FloatArray, step: int, *, role: str = "grad_norm", every: int = 1) -> Move | None:
    return measure(prepare(signal_of("x", values, STEPS[: len(values)] * every, role=role)), step * every)


def noisy(size: float = 0.05) -> FloatArray:
    return np.asarray(np.exp(np.random.default_rng(0).normal(0, size, N)), dtype=np.float64)


@pytest.mark.parametrize(("points", "step"), [(3, 1), (6, 1), (100, 100), (100, 5000)])
def test_too_little_around_the_step(points: int, step: int) -> None:
    assert moved(noisy()[:points], step) is None


def test_nothing_moved() -> None:
    found = moved(noisy(), 500)
    assert found is not None
    assert found.onset_step is None
    assert found.points_up == 0
    assert found.settled == pytest.approx(1.0, abs=0.05)
    assert abs(found.settled_z) < 4


def test_a_short_rise() -> None:
    values = noisy()
    values[500:503] *= 8
    found = moved(values, 500)
    assert found is not None
    assert found.onset_step == 500
    assert 500 <= found.peak_step <= 502
    assert found.factor == pytest.approx(8, rel=0.2)
    assert found.points_up == 3
    assert found.half_life in {1, 2}
    assert found.echo == pytest.approx(1, abs=0.2)
    assert found.baseline == pytest.approx(1, rel=0.05)


def test_a_lead_is_seen() -> None:
    values = noisy()
    values[494:503] *= 8
    found = moved(values, 500)
    assert found is not None
    assert found.onset_step == 494


def test_an_early_outlier_is_no_lead() -> None:
    values = noisy()
    values[490] *= 8
    values[500:503] *= 8
    found = moved(values, 500)
    assert found is not None
    assert found.onset_step == 500


def test_a_lasting_change() -> None:
    values = noisy()
    values[500:] *= 2
    found = moved(values, 500)
    assert found is not None
    assert found.points_up is None
    assert found.half_life is None
    assert found.settled == pytest.approx(2, rel=0.05)
    assert found.settled_z > 10


def test_explosive_growth() -> None:
    values = noisy(0.01)
    values[500:506] *= 3.0 ** np.arange(1, 7)
    found = moved(values, 500)
    assert found is not None
    assert found.grew == 6


def test_values_that_are_not_finite_are_counted() -> None:
    values = noisy()
    values[[400, 501, 502]] = np.nan
    found = moved(values, 500)
    assert found is not None
    assert found.bad == 2


def test_steps_are_those_of_the_log() -> None:
    values = noisy()
    values[500:503] *= 8
    found = moved(values, 500, every=10)
    assert found is not None
    assert (found.onset_step, found.every) == (5000, 10.0)


def test_a_signal_that_is_compared_as_it_is() -> None:
    values = np.random.default_rng(0).normal(0, 0.1, N)
    values[500:503] += 5
    found = moved(values, 500, role="kl")
    assert found is not None
    assert found.onset_step == 500
    assert found.grew == 0


def test_a_level_that_was_rising_has_not_been_left() -> None:
    drifting = noisy() * np.exp(STEPS / 150)
    drifting[505:508] *= 20
    found = moved(drifting, 505)
    assert found is not None
    assert found.onset_step is not None
    assert abs(found.onset_step - 505) <= 1
