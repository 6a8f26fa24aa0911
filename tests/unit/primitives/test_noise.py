from __future__ import annotations

import numpy as np
import pytest

from forensics.model import FloatArray
from forensics.primitives.noise import NoiseChange, find_noise_changes, swing_period
from forensics.primitives.prepared import prepare
from tests.unit.synthetic import falling, signal_of


def changes(values: FloatArray) -> list[NoiseChange]:
    ready = prepare(signal_of("loss", values, role="loss"))
    return find_noise_changes(ready.u, ready.centre, ready.values)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 1000, [1.0, 2.0] * 20])
def test_too_little_to_say(values: list[float]) -> None:
    assert changes(np.array(values)) == []


@pytest.mark.parametrize("points", [300, 900, 5000])
def test_healthy_curves_have_none(points: int) -> None:
    assert [seed for seed in range(20) if changes(falling(points, seed))] == []


def test_a_spike_is_no_change_of_noise() -> None:
    values = falling(2000, 1)
    values[1000:1005] *= 5
    assert changes(values) == []


def test_less_noise_is_no_event() -> None:
    values = np.concatenate([falling(2000, 1, 0.06)[1000:], falling(2000, 2, 0.02)[1000:]])
    assert changes(values) == []


@pytest.mark.parametrize("seed", range(5))
def test_more_noise(seed: int) -> None:
    quiet, loud = falling(3000, seed, 0.02), falling(3000, seed, 0.06)
    values = np.where(np.arange(3000) < 1500, quiet, loud)
    (found,) = changes(values)
    assert abs(found.index - 1500) <= 20
    assert found.after / found.before == pytest.approx(3.0, rel=0.35)
    assert found.period is None


def test_a_swing_has_a_period() -> None:
    steps = np.arange(3000)
    values = falling(3000, 1, 0.01) * np.exp(np.where(steps >= 1500, 0.2 * np.sin(steps * 2 * np.pi / 25), 0))
    found = changes(values)
    assert len(found) == 1
    assert abs(found[0].index - 1500) <= 30
    assert found[0].period == pytest.approx(25, abs=1)


def test_period_of_a_sine_and_of_noise() -> None:
    rng = np.random.default_rng(0)
    assert swing_period(np.sin(np.arange(500) * 2 * np.pi / 40) + 0.1 * rng.normal(size=500)) == pytest.approx(40, abs=1)
    assert swing_period(rng.normal(size=500)) is None
    assert swing_period(np.zeros(500)) is None
    assert swing_period(np.ones(5)) is None


@pytest.mark.parametrize("seed", range(10))
def test_correlated_or_heavy_noise_of_steady_size_has_no_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walk = np.zeros(3000)
    white = rng.standard_t(4.0, 3000)
    for i in range(1, 3000):
        walk[i] = 0.6 * walk[i - 1] + white[i]
    assert changes(np.exp(1.0 + 0.02 * walk)) == []


def test_a_step_of_the_level_is_no_change_of_noise() -> None:
    values = falling(3000, 1, 0.005) * np.where(np.arange(3000) < 1500, 1.0, 1.1)
    assert changes(values) == []
