from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import Absent, Run, Signal, Span


def signal(steps: list[int], values: list[float], starts: tuple[int, ...] = (0,), **more: object) -> Signal:
    return Signal("loss", np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64), starts=starts, **more)  # type: ignore[arg-type]


def test_empty_signal_has_an_empty_curve() -> None:
    curve = signal([], []).curve()
    assert len(curve) == 0
    assert curve.values.dtype == np.float64


def test_duplicate_steps_of_one_attempt_keep_the_last_value() -> None:
    curve = signal([0, 1, 1, 2], [0, 10, 11, 20]).curve()
    assert curve.steps.tolist() == [0, 1, 2]
    assert curve.values.tolist() == [0, 11, 20]
    assert curve.index.tolist() == [0, 2, 3]


def test_out_of_order_steps_are_sorted() -> None:
    curve = signal([5, 3, 4, 3], [50, 30, 40, 31]).curve()
    assert curve.steps.tolist() == [3, 4, 5]
    assert curve.values.tolist() == [31, 40, 50]


def test_a_later_attempt_replaces_what_it_repeats() -> None:
    twice = signal([0, 1, 2, 3, 2, 3, 4], [0, 1, 2, 3, 20, 30, 40], (0, 4))
    assert twice.curve().values.tolist() == [0, 1, 20, 30, 40]
    assert twice.curve(1).values.tolist() == [0, 1, 2, 3]
    assert twice.curve(2).values.tolist() == twice.curve().values.tolist()
    assert twice.curve(9).values.tolist() == twice.curve().values.tolist()


def test_an_attempt_that_went_back_drops_the_steps_it_never_reached_again() -> None:
    curve = signal([0, 1, 2, 3, 4, 2], [0, 1, 2, 3, 4, 20], (0, 5)).curve()
    assert curve.steps.tolist() == [0, 1, 2]
    assert curve.values.tolist() == [0, 1, 20]


def test_three_attempts_the_middle_one_swallowed() -> None:
    curve = signal([0, 1, 2, 1, 2, 1], [0, 1, 2, 10, 20, 100], (0, 3, 5)).curve()
    assert curve.values.tolist() == [0, 100]


def test_an_attempt_without_points_changes_nothing() -> None:
    curve = signal([0, 1, 2], [0, 1, 2], (0, 3)).curve()
    assert curve.values.tolist() == [0, 1, 2]


def test_non_finite_values_stay() -> None:
    curve = signal([0, 1], [np.nan, np.inf]).curve()
    assert np.isnan(curve.values[0])
    assert np.isinf(curve.values[1])


@given(st.lists(st.integers(-5, 30), max_size=40), st.lists(st.integers(0, 40), max_size=3))
def test_a_curve_is_ascending_and_comes_from_the_signal(steps: list[int], cuts: list[int]) -> None:
    starts = (0, *sorted({c for c in cuts if 0 < c <= len(steps)}))
    made = signal(steps, [float(i) for i in range(len(steps))], starts)
    for attempts in (None, *range(1, len(starts) + 1)):
        curve = made.curve(attempts)
        assert (np.diff(curve.steps) > 0).all()
        assert (made.steps[curve.index] == curve.steps).all()
        assert (made.values[curve.index] == curve.values).all()
    if steps:
        last = made.curve()
        assert steps[-1] in last.steps.tolist()


def test_origin_names_source_and_record() -> None:
    joined = signal([0, 1, 2, 3], [0, 1, 2, 3], spans=(Span(0, 0, 2), Span(1, 2, 4)), records=np.array([2, 3, 7, 9]))
    assert joined.origin(0) == (0, 2)
    assert joined.origin(3) == (1, 9)


def test_origin_counts_where_records_were_not_kept() -> None:
    joined = signal([0, 1, 2], [0, 1, 2], spans=(Span(0, 0, 2), Span(4, 2, 3)))
    assert joined.origin(1) == (0, 2)
    assert joined.origin(2) == (4, 1)


def test_origin_of_a_point_outside_every_span() -> None:
    assert signal([0], [0]).origin(0) == (-1, 1)


def test_absence_is_said() -> None:
    run = Run("p", "n", (), ())
    absent = run.signal("lr")
    assert isinstance(absent, Absent)
    assert absent.what == "lr"
    assert absent.why


def test_primary_first() -> None:
    first = signal([0], [0], role="lr", rank=0)
    second = signal([0], [1], role="lr", rank=1)
    run = Run("p", "n", (), (second, first))
    assert run.signal("lr") is first
    assert run.all("lr") == (first, second)


def test_nothing_in_the_model_can_be_changed() -> None:
    with pytest.raises(AttributeError):
        signal([0], [0]).name = "x"  # type: ignore[misc]
