from __future__ import annotations

import math

import pytest

from forensics.replay.wire import Request, State, StepResult, Target, agrees, came_back, disagreement

SPIKE = Target("spike", "loss", 100, 101, baseline=2.0, height=4.0)


def rows(values: dict[int, float], norm: float = 1.0) -> list[StepResult]:
    return [StepResult(step, value, norm) for step, value in values.items()]


def test_values_that_are_not_finite_agree_only_with_each_other() -> None:
    assert disagreement(math.nan, math.inf) == 0.0
    assert disagreement(2.0, math.nan) == math.inf
    assert disagreement(None, 3.0) == 0.0
    assert not agrees(2.0, math.nan, 1.0)
    assert agrees(2.0, 2.1, 0.06)
    assert not agrees(2.0, 2.1, 0.04)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({99: 2.0, 100: 2.0, 101: 2.1, 102: 2.0}, False),
        ({99: 2.0, 100: 3.9, 101: 2.1}, False),  # less than half
        ({99: 2.0, 100: 4.1, 101: 2.1}, True),
        ({99: 2.0, 102: 4.1}, True),  # one step late
        ({99: 2.0, 103: 9.0}, False),  # too late
        ({99: 2.0, 100: math.nan}, True),
        ({}, False),
    ],
)
def test_an_event_comes_back_with_half_its_height_at_its_step(values: dict[int, float], expected: bool) -> None:
    assert came_back(SPIKE, rows(values)) is expected


def test_a_drop_comes_back_downwards() -> None:
    drop = Target("drop", "loss", 100, 101, baseline=2.0, height=-1.0)
    assert came_back(drop, rows({100: 1.4}))
    assert not came_back(drop, rows({100: 3.0}))


def test_a_non_finite_value_comes_back_at_its_step_in_either_signal() -> None:
    target = Target("non_finite", "loss", 100, 101, non_finite=100)
    assert came_back(target, [StepResult(100, 2.0, math.nan)])
    assert not came_back(target, [StepResult(97, math.nan, 1.0), StepResult(100, math.nan, 1.0)])
    assert not came_back(target, rows({100: 9.0}))


def test_a_request_survives_the_wire() -> None:
    logged = {"loss": {1: 2.0, 2: math.nan}}
    request = Request("r.py", "recipe", "run", {"a": {"b": 1}}, "cpu", SPIKE, State("c.pt", 80), 110, State("b.pt", 40), logged=logged, experiments=("R2",))
    back = Request.from_json(request.to_json())
    assert back.target == request.target
    assert back.earlier == State("b.pt", 40)
    assert back.logged["loss"][1] == 2.0
    assert math.isnan(back.logged["loss"][2])
    assert back.experiments == ("R2",)
