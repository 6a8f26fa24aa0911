from __future__ import annotations

import numpy as np
import pytest

from forensics.model import FloatArray, Run
from forensics.simple_rules import RULES, olmo_monitor, robust_z, twice_the_median
from tests.unit.synthetic import signal_of

N = 1000


def run(loss: FloatArray) -> Run:
    return Run("x", "x", (), (signal_of("loss", loss, np.arange(len(loss)), role="loss"),))


def noisy() -> FloatArray:
    return np.asarray(2.0 + np.random.default_rng(5).normal(0, 0.05, N), dtype=np.float64)


@pytest.mark.parametrize("rule", [rule for _, rule in RULES])
@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 400])
def test_too_little_or_nothing(rule: object, values: list[float]) -> None:
    assert callable(rule)
    assert rule(run(np.array(values, dtype=np.float64))) == []
    assert rule(Run("x", "x", (), ())) == []


def test_a_spike_is_one_alarm_for_all() -> None:
    loss = noisy()
    loss[500:503] = 6.0
    assert [rule(run(loss)) for _, rule in RULES] == [[500], [500], [500]]


def test_each_has_its_threshold() -> None:
    loss = noisy()
    loss[500] = 2.6
    assert olmo_monitor(run(loss)) == [500]
    assert robust_z(run(loss)) == [500]
    assert twice_the_median(run(loss)) == []


def test_a_nan_alarms_all() -> None:
    loss = noisy()
    loss[700] = np.nan
    assert all(rule(run(loss)) == [700] for _, rule in RULES)


def test_the_monitor_uses_the_mean_of_the_window() -> None:
    """Against a plain loop: population standard deviation of the last 128 values, the tested one excluded."""
    loss = noisy()
    loss[[300, 420, 800]] += [0.31, 0.2, 0.5]
    expected = [i for i in range(64, N) if loss[i] > loss[max(0, i - 128) : i].mean() + 6 * loss[max(0, i - 128) : i].std()]
    assert olmo_monitor(run(loss)) == expected
