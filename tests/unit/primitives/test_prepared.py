from __future__ import annotations

import numpy as np
import pytest

from forensics.model import Absent, Attempt
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import prepare
from tests.unit.synthetic import falling, run_of, signal_of


@pytest.mark.parametrize("values", [[], [np.nan] * 5, [3.0], [2.0] * 30, [np.inf, -np.inf, np.nan]])
def test_odd_curves_are_prepared(values: list[float]) -> None:
    ready = prepare(signal_of("loss", values, role="loss"))
    assert len(ready) == sum(np.isfinite(values))
    assert (ready.noise > 0).all()
    assert len(ready.bad) == len(values) - len(ready)


def test_a_positive_loss_is_compared_as_logarithm() -> None:
    ready = prepare(signal_of("loss", [1.0, 2.0, 4.0], role="loss"))
    assert ready.log
    assert ready.u == pytest.approx(np.log([1.0, 2.0, 4.0]))
    assert ready.original(float(ready.u[2])) == pytest.approx(4.0)


def test_a_loss_that_goes_below_zero_is_not() -> None:
    ready = prepare(signal_of("loss", [1.0, -2.0, 4.0], role="loss"))
    assert not ready.log
    assert ready.u.tolist() == [1.0, -2.0, 4.0]


def test_a_zero_learning_rate_is_left_out_of_the_logarithm_not_called_bad() -> None:
    ready = prepare(signal_of("lr", [1e-3, 0.0, 1e-3], role="lr"))
    assert ready.steps.tolist() == [0, 2]
    assert ready.bad.tolist() == []


def test_huge_logarithms_do_not_overflow() -> None:
    assert np.isfinite(prepare(signal_of("loss", [1.0, 2.0], role="loss")).original(1e6))


def test_the_noise_level_is_that_of_the_curve() -> None:
    ready = prepare(signal_of("loss", falling(4000, 1, noise=0.05), role="loss"))
    assert float(np.median(ready.noise)) == pytest.approx(0.05, rel=0.15)


def test_coarse_printing_is_not_taken_for_silence() -> None:
    values = np.round(falling(2000, 1, noise=0.0005), 2)
    ready = prepare(signal_of("loss", values, role="loss"))
    assert float(np.median(ready.noise)) >= 0.001


def test_the_logging_interval() -> None:
    assert prepare(signal_of("loss", [3.0, 2.0, 1.0], [0, 10, 20], role="loss")).every == 10.0


def test_position_of_a_step() -> None:
    ready = prepare(signal_of("loss", [3.0, np.nan, 1.0], [0, 10, 20], role="loss"))
    assert ready.at(10) == 1
    assert ready.at(999) == 2
    assert ready.index.tolist() == [0, 2]


def test_curves_of_a_run_are_prepared_once() -> None:
    curves = Curves(run_of({"loss": falling(50, 1), "lr": np.full(50, 1e-3)}))
    assert curves.get("loss") is curves.get("loss")
    assert curves.get("grad_norm") is None
    assert [p.name for p in curves.every("lr", "loss", "grad_norm")] == ["lr", "loss"]
    assert curves.last_step == 49
    assert curves.schedule is not None


def test_curves_of_an_empty_run() -> None:
    curves = Curves(run_of({}))
    assert isinstance(curves.run.signal("loss"), Absent)
    assert curves.schedule is None
    assert curves.last_step == 0


def test_curves_as_they_stood_before_a_restart() -> None:
    twice = signal_of("loss", [3.0, 2.0, 1.0, 9.0], [0, 1, 2, 1], starts=(0, 3))
    run = run_of({"loss": twice}, attempts=[Attempt(0, 2), Attempt(1, 1, 0)])
    before, after = Curves(run, 1).get("loss"), Curves(run).get("loss")
    assert before is not None
    assert after is not None
    assert before.values.tolist() == [3.0, 2.0, 1.0]
    assert after.values.tolist() == [3.0, 9.0]
