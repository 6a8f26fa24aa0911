"""What an incident costs."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.model import FloatArray
from forensics.primitives.prepared import Prepared, prepare
from forensics.primitives.setback import setback
from tests.unit.synthetic import signal_of

POINTS, AT = 2000, 1000


def loss_of(values: FloatArray, every: int = 1) -> Prepared:
    return prepare(signal_of("loss", values, steps=np.arange(len(values)) * every, role="loss"))


def falling() -> FloatArray:
    values: FloatArray = 2.0 + 4.0 * np.exp(-np.arange(POINTS) / 400) + np.random.default_rng(0).normal(0, 0.01, POINTS)
    return values


def test_nothing_before_it_gives_no_level() -> None:
    assert setback(loss_of(falling()), 1, 5) is None


def test_one_point_before_the_end_of_the_log() -> None:
    values = falling()
    values[-1] += 3.0
    cost = setback(loss_of(values), POINTS - 1, None)
    assert cost is not None
    assert cost.area == pytest.approx(3.0, abs=0.1)


def test_a_run_back_on_its_course_lost_nothing() -> None:
    values = falling()
    values[AT : AT + 60] += 1.0
    cost = setback(loss_of(values), AT, AT + 60)
    assert cost is not None
    assert cost.height == pytest.approx(1.0, abs=0.05)
    assert cost.area == pytest.approx(60.0, rel=0.1)
    assert cost.steps < 20


@pytest.mark.parametrize("every", [1, 10])
def test_a_run_back_at_its_level_lost_the_steps_between(every: int) -> None:
    values = np.full(POINTS, 2.0) + np.random.default_rng(1).normal(0, 0.01, POINTS)
    values[AT : AT + 60] += 1.0
    cost = setback(loss_of(values, every), AT, AT + 60)
    assert cost is not None
    assert cost.steps == 60 * every


def test_a_run_that_stays_up_lost_all_since_it_passed_that_level() -> None:
    values = falling()
    values[AT:] = values[300] + np.random.default_rng(2).normal(0, 0.01, POINTS - AT)
    cost = setback(loss_of(values), AT, None)
    assert cost is not None
    assert cost.steps == pytest.approx(POINTS - 300, abs=25)
