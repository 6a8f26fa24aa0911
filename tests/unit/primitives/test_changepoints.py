from __future__ import annotations

import numpy as np
import pytest

import forensics
from forensics.primitives.changepoints import changepoints


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 500, [float("nan")] * 50, [float("inf"), 1.0, float("-inf")] * 20])
def test_nothing_to_divide(values: list[float]) -> None:
    assert changepoints(values) == []


@pytest.mark.parametrize("seed", range(8))
def test_noise_and_trends_have_no_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=400)
    assert len(changepoints(noise)) <= 1
    assert len(changepoints(np.cumsum(rng.normal(size=400)))) <= 1
    assert len(changepoints(noise + 0.02 * np.arange(400))) <= 1


def test_levels_are_placed() -> None:
    values = np.random.default_rng(0).normal(size=600)
    values[200:400] += 6
    found = changepoints(values)
    assert len(found) == 2
    assert abs(found[0] - 200) <= 2
    assert abs(found[1] - 400) <= 2


def test_outliers_are_not_changes() -> None:
    values = np.random.default_rng(1).normal(size=500)
    values[[100, 250, 251, 400]] += 40
    assert changepoints(values) == []


def test_a_long_series_is_placed_at_full_resolution() -> None:
    values = np.random.default_rng(2).normal(size=100_000)
    values[61_234:] += 3
    (found,) = changepoints(values)
    assert abs(found - 61_234) <= 5


def test_it_is_public() -> None:
    assert forensics.changepoints is changepoints
