"""Slow movements and signals found by name: too few points, noise, direction, order of layers, roles that are missing."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate import trends
from forensics.correlate.view import View
from forensics.detectors import Incident
from forensics.model import Event, EventKind, FloatArray, Run, Severity, Signal
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import prepare
from forensics.vocabulary import assign_roles

POINTS = 800


def noise(seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=POINTS)


def signal(name: str, values: FloatArray) -> Signal:
    return assign_roles([Signal(name, np.arange(len(values), dtype=np.int64), values)])[0]


def view(**named: FloatArray) -> View:
    signals = assign_roles([Signal(n.replace("__", "/"), np.arange(len(v), dtype=np.int64), v) for n, v in named.items()])
    run = Run("run", "run", (), signals)
    event = Event(EventKind.LEVEL_SHIFT, Severity.WARNING, 0.9, "loss", 600, 600)
    return View(run, Curves(run), Incident(event, (event,)))


def test_noise_and_too_few_points_have_no_trend() -> None:
    assert trends.trend_before(None, 600) is None
    assert trends.trend_before(prepare(signal("act_rms", 5 + noise())), 600) is None
    assert trends.trend_before(prepare(signal("act_rms", np.arange(45.0))), 45) is None


@pytest.mark.parametrize("direction", [1, -1])
def test_a_trend_has_its_direction_and_size(direction: int) -> None:
    found = trends.trend_before(prepare(signal("act_rms", 100 + direction * np.arange(POINTS) / 20 + noise())), 600)
    assert found is not None
    assert found.rises is (direction > 0)
    assert found.end - found.start == pytest.approx(direction * 22.5, abs=2)
    assert (found.first_step, found.last_step) == (88, 587)


def test_a_step_at_the_event_is_no_trend_before_it() -> None:
    values = 5 + 0.1 * noise() + np.where(np.arange(POINTS) >= 595, 40, 0)
    assert trends.trend_before(prepare(signal("act_rms", values)), 600) is None


def test_layers_are_ordered_by_their_number_and_norms_are_no_layers() -> None:
    names = ("grad/layers.10.mlp", "grad/layers.2.mlp", "grad_l2/embed", "grad/beta1")
    found = trends.by_depth([prepare(signal(n, noise())) for n in names])
    assert [s.name for s in found] == ["grad/layers.10.mlp", "grad/layers.2.mlp"][::-1]
    assert trends.by_depth([prepare(signal("grad/layers.2", noise()))]) == ()


def test_signals_are_found_by_words_of_their_names_once_prepared() -> None:
    asked = view(loss=noise(), rollout__mismatch_mean=noise(), loss_D=noise(), loss_discount=noise())
    assert [s.name for s in trends.named(asked, "rollout", "mismatch")] == ["rollout/mismatch_mean"]
    assert trends.named(asked, "rollout")[0] is trends.named(asked, "mismatch")[0]
    assert [s.name for s in trends.named(asked, "loss", one_of=("d",))] == ["loss_D"]


def test_a_fall_is_more_than_noise() -> None:
    falls = 1 + 0.05 * noise() - np.where(np.arange(POINTS) >= 600, 0.5, 0.0)
    found = trends.fell(prepare(signal("reward", falls)), 600)
    assert found is not None
    assert found[0] - found[1] == pytest.approx(0.5, abs=0.05)
    assert trends.fell(prepare(signal("reward", 1 + 0.05 * noise())), 600) is None
    assert trends.fell(prepare(signal("reward", falls)), 799) is None
    assert trends.fell(None, 600) is None


def test_sources_that_moved_are_told_from_calm_ones() -> None:
    plain = np.exp(0.02 * noise())
    jumped = plain * np.where(np.arange(POINTS) >= 600, 1.5, 1.0)
    found = trends.sources(view(loss=jumped, loss_web=jumped * 1.1, loss_code=plain * 0.9))
    assert found == trends.Sources(("loss_web",), ("loss_code",))
    assert trends.sources(view(loss=jumped, loss_web=jumped)) is None


def test_correlation_by_ranks_survives_ties_and_constants() -> None:
    x = np.array([1.0, 2.0, 2.0, 4.0, 1e300])
    assert trends.rank_correlation(x, -x) == pytest.approx(-1)
    assert trends.rank_correlation(x, np.ones(5)) == 0
    assert trends.rank_correlation(x[:2], x[:2]) == 0


def test_deviation_of_huge_numbers() -> None:
    assert trends.deviation(np.array([0.0, 2e300])) == pytest.approx(1e300)
    assert trends.deviation(np.array([])) == 0
    assert trends.deviation(np.zeros(3)) == 0


def test_only_steps_that_both_logged_are_compared() -> None:
    a, b = signal("loss", np.arange(10.0)), Signal("x", np.arange(0, 20, 2, dtype=np.int64), np.arange(10.0))
    left, right = trends.together(prepare(a), prepare(b), 2, 6)
    assert len(left) == len(right) == 3
