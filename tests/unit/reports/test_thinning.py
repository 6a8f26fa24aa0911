"""Thinning must never lose an extreme, a broken value, or a point near an event."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.reports.thinning import WHOLE_POINTS, thin


def test_empty_curve() -> None:
    series = thin(np.empty(0, np.int64), np.empty(0))
    assert series.steps == ()
    assert series.values == ()


def test_all_nan_keeps_its_ends_and_stays_small() -> None:
    series = thin(np.arange(100_000), np.full(100_000, math.nan), buckets=50)
    assert series.steps[0] == 0
    assert series.steps[-1] == 99_999
    assert len(series.steps) <= 300
    assert all(math.isnan(v) for v in series.values)


def test_flicker_between_finite_and_nan_stays_bounded() -> None:
    values = np.where(np.arange(200_000) % 2 == 0, math.nan, 1.0)
    series = thin(np.arange(200_000), values, [(0, 200_000)], buckets=500)
    assert len(series.steps) < 2 * 500 + 4 * 500 + 2 * WHOLE_POINTS
    assert any(math.isnan(v) for v in series.values)


def test_a_single_nan_and_a_single_inf_survive_with_their_neighbours() -> None:
    values = np.zeros(50_000)
    values[30_001] = math.nan
    values[12_345] = -math.inf
    series = thin(np.arange(50_000), values, buckets=10)
    kept = dict(zip(series.steps, series.values, strict=True))
    assert math.isnan(kept[30_001])
    assert kept[12_345] == -math.inf
    assert {30_000, 30_002, 12_344, 12_346} <= kept.keys()


def test_short_curve_is_untouched() -> None:
    series = thin(np.array([3, 1, 2]), np.array([1, 2, 3]))
    assert series.steps == (3, 1, 2)
    assert series.values == (1.0, 2.0, 3.0)
    assert all(isinstance(v, float) for v in series.values)


def test_windows_are_whole_and_overlapping_ones_count_once() -> None:
    steps = np.arange(0, 1_000_000, 10)
    series = thin(steps, np.sin(steps), [(500_000, 500_500), (500_400, 500_900), (7, 7)], buckets=20)
    inside = [s for s in series.steps if 500_000 <= s <= 500_900]
    assert inside == list(range(500_000, 500_901, 10))


def test_a_window_over_everything_does_not_undo_the_thinning() -> None:
    series = thin(np.arange(300_000), np.random.default_rng(0).normal(size=300_000), [(0, 300_000)], buckets=100)
    assert len(series.steps) < 2 * WHOLE_POINTS
    assert series.steps[:500] == tuple(range(500))


def test_steps_that_go_back_keep_their_order() -> None:
    steps = np.concatenate((np.arange(5000), np.arange(4000, 9000)))
    series = thin(steps, np.arange(10_000), [(4990, 4999)], buckets=20)
    assert sum(1 for a, b in zip(series.steps, series.steps[1:], strict=False) if b < a) == 1
    assert series.steps.count(4995) == 2


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=400),
    st.integers(1, 40),
)
def test_minimum_maximum_and_ends_are_always_kept(values: list[float], buckets: int) -> None:
    array = np.array(values)
    series = thin(np.arange(len(values)), array, buckets=buckets)
    finite = array[np.isfinite(array)]
    kept = np.array(series.values)
    assert series.steps[0] == 0
    assert series.steps[-1] == len(values) - 1
    assert list(series.steps) == sorted(set(series.steps))
    if len(finite):
        assert kept[np.isfinite(kept)].min() == finite.min()
        assert kept[np.isfinite(kept)].max() == finite.max()
    for word in (math.inf, -math.inf):
        assert (word in series.values) == (word in values)
    assert any(map(math.isnan, series.values)) == any(map(math.isnan, values))


@pytest.mark.parametrize("points", [2_999, 3_000, 3_001, 4_501])
def test_bucket_borders_lose_nothing(points: int) -> None:
    values = np.zeros(points)
    values[-1] = 5.0
    values[points // 2] = -5.0
    series = thin(np.arange(points), values)
    assert max(series.values) == 5.0
    assert min(series.values) == -5.0
