from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.correlate.batches import MAX_BATCHES, Habit, batches_at, habit, recurrence
from forensics.model import Attempt, BatchRef, Event, EventKind, Run, Severity
from forensics.primitives.curves import Curves
from tests.unit.synthetic import run_of, signal_of


def event(step: int) -> Event:
    return Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", step, step)


def exact(hits: int, points: int, marked: int, drawn: int) -> float:
    """Hypergeometric upper tail, in whole numbers."""
    return sum(comb(marked, k) * comb(points - marked, drawn - k) for k in range(hits, min(marked, drawn) + 1)) / comb(points, drawn)


def test_no_batch_ids() -> None:
    run = run_of({"loss": [1.0, 2.0]})
    assert batches_at(run, 0, 1, None) == ()
    assert recurrence(run, event(0), (event(1),), None) is None


def test_the_step_before_is_listed_too() -> None:
    run = run_of({"batch_id": np.arange(100) * 7})
    assert batches_at(run, 50, 52, None) == tuple(BatchRef(s, 7 * s) for s in (49, 50, 51, 52))


def test_the_first_step_has_none_before() -> None:
    assert batches_at(run_of({"batch_id": np.arange(10)}), 0, 0, None) == (BatchRef(0, 0),)


def test_the_list_is_bounded() -> None:
    assert len(batches_at(run_of({"batch_id": np.arange(1000)}), 100, 900, None)) == MAX_BATCHES


def test_large_ids_stay_exact_and_missing_ones_are_left_out() -> None:
    assert batches_at(run_of({"batch_id": np.array([2**60, 2**60 + 1])}), 1, 1, None)[1].batch_id == 2**60 + 1
    assert [b.step for b in batches_at(run_of({"batch_id": [1.0, np.nan, 3.0]}), 1, 2, None)] == [0, 2]


def test_an_attempt_that_was_replaced_has_its_own_batches() -> None:
    ids = signal_of("batch_id", np.array([1, 2, 3, 20, 30]), [0, 1, 2, 1, 2], starts=(0, 3))
    run = run_of({"batch_id": ids}, attempts=[Attempt(0, 2), Attempt(1, 2, 0)])
    assert batches_at(run, 1, 1, 1)[-1].batch_id == 2
    assert batches_at(run, 1, 1, None)[-1].batch_id == 20


def test_a_batch_at_three_events_is_no_coincidence() -> None:
    ids = np.arange(3000)
    ids[[700, 1500, 2300]] = 4242
    found = recurrence(run_of({"batch_id": ids}), event(700), (event(1500), event(2300)), None)
    assert found is not None
    assert found.steps == (700, 1500, 2300)
    assert found.batch_id == 4242
    assert found.p_value == pytest.approx(exact(3, 3000, 3, 3), rel=1e-9)


def test_a_batch_that_is_everywhere_says_nothing() -> None:
    found = recurrence(run_of({"batch_id": np.arange(1000) % 2}), event(100), (event(200),), None)
    assert found is not None
    assert found.p_value == pytest.approx(exact(2, 1000, 500, 2))
    assert found.p_value > 0.2


def test_a_batch_that_stood_here_only() -> None:
    assert recurrence(run_of({"batch_id": np.arange(1000)}), event(100), (event(200),), None) is None


def test_an_event_between_logged_steps_has_no_batch_of_its_own() -> None:
    ids = signal_of("batch_id", np.array([7, 7, 7]), [0, 10, 20])
    assert recurrence(run_of({"batch_id": ids}), event(15), (event(10),), None) is None
    assert recurrence(run_of({"batch_id": ids}), event(99), (event(10),), None) is None


@given(st.data())
def test_the_chance_is_the_exact_one(data: st.DataObject) -> None:
    points = data.draw(st.integers(6, 300))
    times = sorted(data.draw(st.sets(st.integers(0, points - 1), min_size=2, max_size=6)))
    others = data.draw(st.sets(st.integers(0, points - 1), max_size=4))
    ids = np.arange(points) + 1000
    ids[times] = 7
    onsets = {times[0], times[1], *others}
    found = recurrence(run_of({"batch_id": ids}), event(times[0]), tuple(event(s) for s in onsets if s != times[0]), None)
    assert found is not None
    assert found.p_value == pytest.approx(exact(len(onsets & set(times)), points, len(times), len(onsets)), rel=1e-6)


def habit_of(run: Run, step: int) -> Habit | None:
    loss = Curves(run).get("loss")
    assert loss is not None
    return habit(run, loss, step, None)


def epochs(bad: int | None = None, points: int = 1000, length: int = 100) -> Run:
    rng = np.random.default_rng(0)
    ids = np.arange(points) % length
    loss = 2 * np.exp(0.02 * rng.normal(size=points))
    if bad is not None:
        loss[ids == bad] *= 1.06
    return run_of({"loss": loss, "batch_id": ids})


def test_habits_need_ids_and_several_other_steps() -> None:
    assert habit_of(run_of({"loss": np.ones(100)}), 50) is None
    assert habit_of(run_of({"loss": np.ones(100), "batch_id": np.arange(100)}), 50) is None
    assert habit_of(run_of({"loss": np.ones(100), "batch_id": np.zeros(100)}), 50) is None
    assert habit_of(epochs(), 5000) is None
    assert habit_of(run_of({"loss": [1.0, 2.0], "batch_id": [1, 1]}), 1) is None


def test_an_ordinary_batch_has_no_habit() -> None:
    found = habit_of(epochs(), 357)
    assert found is not None
    assert found.times == 9
    assert found.p_value > 0.01


def test_the_events_own_step_does_not_prove_itself() -> None:
    run = epochs()
    loss = np.array(run.signals[0].values)
    loss[357] *= 10
    own = habit_of(run_of({"loss": loss, "batch_id": np.arange(1000) % 100}), 357)
    assert own is not None
    assert own.p_value > 0.01


def test_a_batch_that_is_always_worse() -> None:
    found = habit_of(epochs(bad=57), 357)
    assert found is not None
    assert (found.batch_id, found.times) == (57, 9)
    assert found.worse >= 7
    assert found.p_value < 1e-4
