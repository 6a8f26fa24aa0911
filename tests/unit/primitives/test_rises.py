from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from forensics.model import FloatArray
from forensics.primitives.prepared import prepare
from forensics.primitives.rises import Rise, find_rises, point_scores
from tests.unit.synthetic import bump, falling, signal_of

SEEDS = range(20)


def rises(values: FloatArray) -> list[Rise]:
    ready = prepare(signal_of("loss", values, role="loss"))
    return find_rises(ready.u, ready.noise)


@pytest.mark.parametrize("values", [[], [2.0], [2.0, 9.0], [2.0] * 30, [1e-300] * 50])
def test_too_little_to_say(values: list[float]) -> None:
    assert rises(np.array(values)) == []


def test_a_long_constant_curve() -> None:
    assert rises(np.full(500, 2.0)) == []


def test_healthy_curves_have_none() -> None:
    """One in a hundred curves may seem to have one (CHANCE): four of 160 or more would be surprising."""
    curves = [(points, tail, seed) for points in (30, 100, 900, 5000) for tail in (None, 6.0) for seed in SEEDS]
    found = [curve for curve in curves if rises(falling(curve[0], curve[2], tail=curve[1]))]
    assert len(found) < 5, found


def test_a_heavy_tail_is_no_event() -> None:
    assert sum(bool(rises(falling(3000, seed, tail=2.5))) for seed in SEEDS) <= 3


def test_a_fall_is_no_rise() -> None:
    values = falling(900, 3)
    values[500:] *= 0.5
    assert rises(values) == []


def test_a_linear_fall_and_a_staircase_down() -> None:
    rng = np.random.default_rng(5)
    assert rises(np.linspace(8, 2, 1000) * np.exp(rng.normal(0, 0.02, 1000))) == []
    assert rises(np.repeat([5.0, 4.0, 3.0, 2.0], 250) * np.exp(rng.normal(0, 0.02, 1000))) == []


@pytest.mark.parametrize("onset", [150, 400, 700, 880])
def test_a_spike(onset: int) -> None:
    for seed in range(8):
        found = rises(falling(900, seed) * bump(900, onset, 0.8, 4))
        assert len(found) == 1
        assert abs(found[0].onset - onset) <= 1
        assert onset <= found[0].peak <= onset + 4
        assert found[0].p_value < 0.01
        if onset < 850:
            assert found[0].end is not None
            assert found[0].end - onset <= 40


def test_a_spike_of_one_point() -> None:
    values = falling(900, 2)
    values[500] *= 6
    (found,) = rises(values)
    assert (found.onset, found.peak) == (500, 500)
    assert found.end is not None
    assert found.end - 500 <= 3


@pytest.mark.parametrize("onset", [300, 600])
def test_a_slow_spike(onset: int) -> None:
    for seed in range(8):
        found = rises(falling(1500, seed) * bump(1500, onset, 0.6, 60))
        assert len(found) == 1
        assert abs(found[0].onset - onset) <= 2
        assert found[0].end is not None
        assert found[0].end - onset > 50


def test_a_small_lasting_shift() -> None:
    for seed in range(8):
        values = falling(2000, seed)
        values[1000:] *= 1.15
        found = rises(values)
        assert len(found) == 1
        assert abs(found[0].onset - 1000) <= 2


def test_a_drift_without_a_sharp_step() -> None:
    for seed in range(8):
        values = falling(3000, seed) * np.exp(np.maximum(np.arange(3000) - 1500, 0) * 0.0003)
        found = rises(values)
        assert len(found) == 1
        assert found[0].width > 16
        assert 1400 <= found[0].onset <= 2000


def test_a_divergence_at_the_end() -> None:
    for seed in range(8):
        values = falling(900, seed) * np.exp(np.maximum(np.arange(900) - 850, 0) * 0.05)
        found = rises(values)
        assert len(found) == 1
        assert found[0].end is None
        assert abs(found[0].onset - 850) <= 6
        assert found[0].peak >= 895


def test_two_spikes_are_two() -> None:
    values = falling(1500, 4) * bump(1500, 500, 0.8, 4) * bump(1500, 1000, 0.8, 4)
    assert [abs(r.onset - o) <= 1 for r, o in zip(rises(values), (500, 1000), strict=True)] == [True, True]


def test_a_spike_inside_a_slow_one_is_part_of_it() -> None:
    values = falling(1500, 4) * bump(1500, 600, 0.8, 80)
    values[620] *= 2
    assert len(rises(values)) == 1


def test_the_number_is_bounded() -> None:
    values = falling(20_000, 1)
    values[200::40] *= 3
    ready = prepare(signal_of("loss", values, role="loss"))
    assert len(find_rises(ready.u, ready.noise, limit=7)) <= 7


def test_rises_are_in_order_and_apart() -> None:
    values = falling(5000, 9, tail=3.0)
    for onset in (900, 2200, 4100):
        values[onset : onset + 3] *= 4
    found = rises(values)
    assert [r.onset for r in found] == sorted(r.onset for r in found)
    assert all(a.end is not None and a.end <= b.onset for a, b in pairwise(found))


def test_scores_are_robust_z() -> None:
    rng = np.random.default_rng(1)
    scores = point_scores(rng.normal(size=5000), np.ones(5000))
    assert np.nanstd(scores) == pytest.approx(1.0, abs=0.05)
    assert point_scores(np.zeros(3), np.ones(3)).shape == (3,)


def test_a_tower_on_a_level_that_rose_long_before_is_its_own_event() -> None:
    values = np.exp(np.random.default_rng(3).normal(0, 0.1, 2000))
    values[100:] *= 3.0
    values[1200:1204] *= 300.0
    onsets = [rise.onset for rise in rises(values)]
    assert any(abs(onset - 100) <= 2 for onset in onsets)
    assert any(abs(onset - 1200) <= 1 for onset in onsets)


def test_the_onset_is_not_drawn_into_the_noise_before_a_calm_level() -> None:
    random = np.random.default_rng(4)
    values = np.concatenate([0.2 * np.exp(random.normal(0, 0.2, 150)), 2.08 * np.exp(random.normal(0, 0.005, 150))])
    found = max(rises(values), key=lambda rise: rise.score)
    assert abs(found.onset - 150) <= 1


def test_one_point_far_above_a_steep_fall_on_few_points() -> None:
    values = 2.2 + 1.8 * np.exp(-np.arange(54) / 14) + np.random.default_rng(5).normal(0, 0.06, 54)
    values[26] *= 1.9
    (found,) = rises(values)
    assert found.onset == 26


def test_an_outlier_shortly_before_a_step_is_not_its_onset() -> None:
    values = np.exp(np.random.default_rng(6).normal(0, 0.2, 200))
    values[114] = 3.3
    values[115:120] = 1.0
    values[120:] *= 15.0
    found = max(rises(values), key=lambda rise: rise.top)
    assert found.onset == 120
