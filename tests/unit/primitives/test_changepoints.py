"""Changes of level and slope: damaged input first, then what only looks like a change, then changes."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.primitives import changepoints as method
from forensics.primitives.changepoints import BLOCKS, FEWEST, changepoints
from forensics.primitives.season import without_season


def noise(n: int, seed: int = 0, phi: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(n)
    for i in range(1, n if phi else 0):
        out[i] += phi * out[i - 1]
    return out


def step(n: int, at: int, height: float, seed: int = 0) -> np.ndarray:
    return noise(n, seed) + height * (np.arange(n) >= at)


# damaged or empty input


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [np.nan],
        [np.inf, -np.inf],
        np.zeros(100),
        np.full(100, 3.7),
        np.full(3000, -1e9),
        np.full(50, np.nan),
        np.full(50, np.inf),
        np.arange(FEWEST - 1) ** 3.0,
        np.where(np.arange(200) < FEWEST - 1, np.arange(200.0), np.nan),
    ],
)
def test_series_that_cannot_show_a_change(values: object) -> None:
    assert changepoints(values) == []  # type: ignore[arg-type]


def test_two_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one value per time.*\(4, 5\)"):
        changepoints(np.zeros((4, 5)))


def test_gaps_are_bridged_and_indices_stay_those_of_the_input() -> None:
    y = step(300, 200, 6.0)
    y[[3, 50, 51, 52, 150]] = np.nan
    y[[80, 260]] = [np.inf, -np.inf]
    assert changepoints(y) == [200]


def test_all_values_at_the_end_missing() -> None:
    y = step(300, 100, 6.0)
    y[280:] = np.nan
    assert changepoints(y) == [100]


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_scale_and_sign_do_not_matter(scale: float) -> None:
    assert changepoints(step(200, 120, 5.0) * scale) == [120]
    assert changepoints(step(200, 120, 5.0) * -scale) == [120]


def test_a_large_offset_does_not_matter() -> None:
    assert changepoints(step(200, 120, 5.0) + 1e6) == [120]


def test_integers_and_lists_are_taken() -> None:
    y = [3, 4, 3, 5, 4, 3, 4, 4, 3, 5] * 6 + [13, 14, 13, 15, 14, 13, 14, 14, 13, 15] * 6
    assert changepoints(y) == [60]


def test_the_input_is_not_touched() -> None:
    y = step(100, 50, 5.0)
    y[7] = np.nan
    before = y.copy()
    changepoints(y)
    np.testing.assert_array_equal(y, before)


# what is not a change


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [20, 100, 400])
def test_noise(seed: int, n: int) -> None:
    assert changepoints(noise(n, seed)) == []


def test_random_walks_rarely() -> None:
    changed = [bool(changepoints(np.cumsum(noise(200, seed)))) for seed in range(12)]
    assert sum(changed) <= 2


@pytest.mark.parametrize("phi", [0.3, 0.6, 0.9])
def test_correlated_noise(phi: float) -> None:
    assert changepoints(noise(300, 1, phi)) == []


def test_a_ramp_with_and_without_noise() -> None:
    assert changepoints(np.arange(200.0)) == []
    assert changepoints(0.05 * np.arange(200) + noise(200)) == []


def test_a_training_curve() -> None:
    n = 600
    y = 2.0 + 8.0 * (1 + np.arange(n) / 6.0) ** -0.5 + 0.05 * noise(n)
    assert changepoints(y) == []


def test_a_bent_curve_without_noise() -> None:
    assert changepoints(np.linspace(0, 1, 300) ** 2) == []


def test_a_season() -> None:
    n = 240
    y = 5.0 * np.tile(noise(12, 3), 20) + 0.05 * np.arange(n) + noise(n, 4)
    assert changepoints(y) == []


def test_single_outliers() -> None:
    y = noise(300)
    y[[40, 120, 121, 250]] += [30.0, -25.0, 40.0, 60.0]
    assert changepoints(y) == []


# changes


@pytest.mark.parametrize("at", [30, 100, 170])
def test_one_step(at: int) -> None:
    found = changepoints(step(200, at, 4.0, seed=at))
    assert len(found) == 1
    assert abs(found[0] - at) <= 2


def test_steps_without_noise_are_exact() -> None:
    y = np.repeat([3.0, 1.0, 7.0, 2.0], [40, 60, 30, 70])
    assert changepoints(y) == [40, 100, 130]


def test_steps_among_outliers() -> None:
    y = step(300, 150, 5.0)
    y[[20, 90, 220]] += [40.0, -40.0, 50.0]
    assert changepoints(y) == [150]


def test_a_step_on_a_falling_curve() -> None:
    n = 800
    y = 3.0 * np.exp(-np.arange(n) / 80.0) + 0.1 * noise(n) + 0.5 * (np.arange(n) >= 500)
    found = changepoints(y)
    assert len(found) == 1
    assert abs(found[0] - 500) <= 1


def test_a_step_in_a_season() -> None:
    n = 240
    y = 4.0 * np.tile(noise(12, 3), 20) + noise(n, 4) + 6.0 * (np.arange(n) >= 130)
    found = changepoints(y)
    assert len(found) == 1
    assert abs(found[0] - 130) <= 3


def test_a_change_of_slope() -> None:
    n = 300
    y = 0.4 * np.maximum(0, np.arange(n) - 150) + noise(n)
    found = changepoints(y)
    assert len(found) == 1
    assert abs(found[0] - 150) <= 8


@pytest.mark.parametrize("n", [BLOCKS, BLOCKS + 1, 3 * BLOCKS, 20 * BLOCKS + 7])
def test_long_series_are_placed_point_by_point(n: int) -> None:
    at = n // 3 + 2
    found = changepoints(step(n, at, 4.0))
    assert len(found) == 1
    assert abs(found[0] - at) <= 2


def test_results_are_plain_ascending_ints() -> None:
    y = np.repeat([0.0, 5.0, -5.0, 5.0], 100) + noise(400)
    found = changepoints(y)
    assert found == sorted(found)
    assert [abs(f - t) <= 1 for f, t in zip(found, (100, 200, 300), strict=True)] == [True] * 3
    assert all(type(f) is int for f in found)


# the parts


def test_a_higher_price_never_buys_more_changes() -> None:
    y = method.usable(np.repeat([0.0, 1.0, 0.5, 2.0], 50) + 0.7 * noise(200))
    assert y is not None
    choices = method.explanations(y)
    counts = [method.cheapest(choices, price).numbers for price in (0.5, 2.0, 5.0, 10.0, 50.0, 1e6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1


def test_costs_agree_with_plain_fits() -> None:
    y = noise(40)
    level, line = method._level_costs(y, 3), method._line_costs(y, 3)
    place = np.arange(10, 25)
    straight = np.polyval(np.polyfit(place, y[10:25], 1), place)
    assert level[25, 10] == pytest.approx(((y[10:25] - y[10:25].mean()) ** 2).sum())
    assert line[25, 10] == pytest.approx(((y[10:25] - straight) ** 2).sum())
    assert np.isinf(level[12, 10])
    assert np.isinf(line[12, 10])


def test_partitions_are_the_best_ones() -> None:
    y = np.repeat([0.0, 3.0, 1.0], [7, 9, 6]) + 0.1 * noise(22)
    cost = method._level_costs(y, 3)
    by_hand = min(((cost[a, 0] + cost[b, a] + cost[22, b]), (a, b)) for a in range(3, 19) for b in range(a + 3, 20))
    assert list(method._partitions(cost, 2))[2] == by_hand[1] == (7, 16)


def test_the_season_is_taken_out_and_nothing_else() -> None:
    n = 240
    season = np.tile(noise(12, 3), 20) * 5
    trend = 0.1 * np.arange(n)
    rest = without_season(trend + season + 0.1 * noise(n))
    assert np.std(rest - trend - (rest - trend).mean()) < 0.5
    plain = noise(n)
    np.testing.assert_array_equal(without_season(plain), plain)
