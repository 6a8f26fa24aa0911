from __future__ import annotations

import numpy as np
import pytest

from forensics.primitives.tails import ASSUMED_DF, Tail


def sample(df: float | None, points: int = 20_000, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=points) if df is None else rng.standard_t(df, points)


@pytest.mark.parametrize("values", [np.empty(0), np.array([1.0]), np.full(5, np.nan), np.zeros(5000), np.full(5000, np.nan)])
def test_nothing_to_measure_is_no_error(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert 0.0 <= Tail(values).p_value(8.0, 100) <= 1.0


def test_few_points_assume_a_moderate_tail() -> None:
    assert Tail(sample(2.0, 50)).df == ASSUMED_DF


def test_a_heavy_tail_is_measured_as_one() -> None:
    heavy, light = Tail(sample(2.5)), Tail(sample(None))
    assert heavy.df < 4
    assert light.df > 10
    assert heavy.p_value(8.0, 1000) > 100 * light.p_value(8.0, 1000)


def test_the_scale_of_the_scores_does_not_matter() -> None:
    once, doubled = Tail(sample(3.0)), Tail(2 * sample(3.0))
    assert doubled.p_value(20.0, 100) == pytest.approx(once.p_value(10.0, 100), rel=0.01)


def test_chance_falls_with_height_and_grows_with_trials() -> None:
    tail = Tail(sample(5.0))
    chances = [tail.p_value(z, 1000) for z in (2.0, 5.0, 10.0, 50.0, 1e6)]
    assert chances == sorted(chances, reverse=True)
    assert tail.p_value(6.0, 10_000) > tail.p_value(6.0, 100)
    assert tail.p_value(6.0, 1e12) == 1.0


def test_events_inside_the_sample_do_not_make_the_tail_heavy() -> None:
    spoiled = sample(None)
    spoiled[100:200] = 40.0
    assert Tail(spoiled).p_value(40.0, len(spoiled)) < 1e-6


def test_the_largest_healthy_point_is_no_surprise() -> None:
    surprises = sum(Tail(z).p_value(float(z.max()), len(z)) < 0.01 for z in (sample(4.0, 2000, seed) for seed in range(200)))
    assert surprises <= 10


def test_a_floor_for_medians() -> None:
    assert Tail(sample(2.0), lightest=30.0).df >= 30.0
