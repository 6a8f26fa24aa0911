"""Attempts: what only looks like a restart first, then restarts, then the plain run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Attempt, Signal, SourceInfo, Span
from forensics.parsers.attempts import split

CSV = (SourceInfo("metrics.csv", "csv", 0),)


def signal(
    name: str,
    steps: list[int] | range,
    *,
    values: list[float] | None = None,
    role: str | None = None,
    records: list[int] | range | None = None,
    times: list[float] | None = None,
    spans: tuple[Span, ...] | None = None,
) -> Signal:
    count = len(steps)
    return Signal(
        name,
        np.array(steps, dtype=np.int64),
        np.array(values if values is not None else np.linspace(5, 2, count), dtype=np.float64),
        wall_times=None if times is None else np.array(times, dtype=np.float64),
        records=None if records is None else np.array(records, dtype=np.int64),
        spans=spans or (Span(0, 0, count),),
        role=role,
    )


def loss(steps: list[int] | range, **more: object) -> Signal:
    return signal("loss", steps, role="loss", **more)  # type: ignore[arg-type]


def test_nothing_logged() -> None:
    assert split([], CSV).attempts == ()
    assert split([signal("a", [])], CSV).attempts == ()


@pytest.mark.parametrize(
    "steps",
    [
        [0, 10, 20, 30],
        [0, 0, 10, 10, 20, 20],
        [0, 10, 20, 30, 40, 5, 50, 60, 70],
        [0, 1, 2, 4, 3, 5, 6],
        [5],
    ],
    ids=["plain", "two rows per step", "late point", "swapped points", "one point"],
)
def test_no_restart(steps: list[int]) -> None:
    parted = split([loss(steps)], CSV)
    assert parted.attempts == (Attempt(steps[0], max(steps)),)
    assert parted.signals[0].starts == (0,)


def test_late_evaluation_makes_no_attempt() -> None:
    train = loss(range(0, 1000, 10), records=range(1, 101))
    evals = signal("eval/loss", [500, 1000, 25], role="val_loss", records=[51, 102, 103])
    parted = split([train, evals], CSV)
    assert len(parted.attempts) == 1
    assert parted.signals[1].starts == (0,)


def test_last_line_repeats_step_zero_with_its_old_time() -> None:
    parted = split([loss([0, 1, 2, 3, 0], times=[100, 200, 300, 400, 100])], CSV)
    assert len(parted.attempts) == 1
    parted = split([loss([0, 1, 2, 3, 0], values=[5, 4, 3, 2, 5])], CSV)
    assert len(parted.attempts) == 1


def test_shuffled_steps_are_noted() -> None:
    steps = np.random.default_rng(0).permutation(200).tolist()
    parted = split([loss(steps)], CSV)
    assert len(parted.attempts) == 1
    assert parted.notes["steps_out_of_order"]


def test_restart_inside_one_file() -> None:
    steps = [*range(100), *range(80, 120)]
    train = loss(steps, records=range(1, 141))
    evals = signal("eval/loss", [50, 100, 85, 110], records=[51, 100, 106, 131])
    late = signal("aux", [90, 100], records=[111, 121])
    early = signal("warm", [10], records=[11])
    parted = split([train, evals, late, early], CSV)
    assert parted.attempts == (Attempt(0, 99), Attempt(80, 119, 79))
    assert [s.starts for s in parted.signals] == [(0, 100), (0, 2), (0, 0), (0, 1)]


def test_points_written_between_the_two_processes() -> None:
    """The learning rate of a step is written before its loss, the evaluation of the old process after its last loss."""
    train = loss([0, 10, 20, 10, 20], records=[2, 4, 6, 9, 11])
    rate = signal("lr", [0, 10, 20, 10, 20], records=[1, 3, 5, 8, 10])
    evals = signal("eval", [20, 20], records=[7, 12])
    parted = split([train, rate, evals], CSV)
    assert [s.starts for s in parted.signals] == [(0, 3), (0, 3), (0, 1)]


def test_signals_kept_in_files_of_their_own_are_placed_by_time() -> None:
    sources = (SourceInfo("run", "mlflow_files", 0),)
    train = loss([0, 1, 2, 1, 2, 3], records=range(1, 7), times=[10, 20, 30, 40, 50, 60])
    sparse = signal("val", [2, 2], records=[1, 2], times=[30, 50])
    parted = split([train, sparse], sources)
    assert [s.starts for s in parted.signals] == [(0, 3), (0, 1)]


def test_neither_records_nor_times() -> None:
    parted = split([loss([0, 1, 2, 1, 2, 3]), signal("lr", [0, 2, 1, 3]), signal("x", [0, 3])], CSV)
    assert [s.starts for s in parted.signals] == [(0, 3), (0, 2), (0, 1)]


def test_restart_from_the_beginning_continues_nothing() -> None:
    parted = split([loss([0, 1, 2, 3, 0, 1, 2, 3, 4])], CSV)
    assert parted.attempts == (Attempt(0, 3), Attempt(0, 4, None))


@pytest.mark.parametrize("second", [[0, 1, 2, 3], [3, 4, 5, 6], [4, 5, 6, 7]], ids=["from zero", "same step", "goes on"])
def test_new_file_of_a_resumed_run(second: list[int]) -> None:
    sources = (SourceInfo("a", "wandb", 0), SourceInfo("b", "wandb", 0))
    steps = [0, 1, 2, 3, *second]
    spans = (Span(0, 0, 4), Span(1, 4, 8))
    only_second = signal("late", second[2:], spans=(Span(1, 0, 2),))
    parted = split([loss(steps, spans=spans), only_second], sources)
    assert [a.first_step for a in parted.attempts] == [0, second[0]]
    assert parted.attempts[1].resumed_from == (second[0] - 1 if second[0] else None)
    assert [s.starts for s in parted.signals] == [(0, 4), (0, 0)]


def test_event_files_know_of_a_restart_the_history_has_forgotten() -> None:
    sources = (SourceInfo("trainer_state.json", "hf_trainer", 0), SourceInfo("e1", "tensorboard", 0), SourceInfo("e2", "tensorboard", 0))
    history = signal("loss", [10, 20, 30, 40, 50], role="loss", records=range(1, 6))
    events = signal("train/loss", [10, 20, 30, 40, 30, 40, 50], spans=(Span(1, 0, 4), Span(2, 4, 7)), times=[1, 2, 3, 4, 9, 10, 11])
    parted = split([history, events], sources)
    assert parted.attempts == (Attempt(10, 40), Attempt(30, 50, 20))
    assert [s.starts for s in parted.signals] == [(0, 2), (0, 4)]


def test_steps_within_epochs_become_running_steps() -> None:
    steps = [s for _ in range(5) for s in range(100, 1001, 100)]
    train = loss(steps, records=range(1, 51))
    evals = signal("val_loss", [1000] * 5, records=[10, 20, 30, 40, 50])
    parted = split([train, evals], CSV)
    assert parted.signals[0].steps.tolist() == list(range(100, 5001, 100))
    assert parted.signals[1].steps.tolist() == [1000, 2000, 3000, 4000, 5000]
    assert parted.notes["step_axis"] == "local steps, made running"
    assert parted.attempts == (Attempt(100, 5000),)


def test_local_steps_from_zero_do_not_overlap() -> None:
    parted = split([loss([s for _ in range(5) for s in range(20)])], CSV)
    assert parted.signals[0].steps.tolist() == list(range(100))


def test_whole_runs_in_one_file_stay_attempts() -> None:
    falling = np.linspace(9, 2, 50).tolist()
    parted = split([loss(list(range(50)) * 5, values=falling * 5)], CSV)
    assert len(parted.attempts) == 5
    assert "step_axis" not in parted.notes


def test_epoch_counter_decides_between_epochs_and_runs() -> None:
    falling = np.linspace(9, 2, 50).tolist()
    epochs = signal("epoch", list(range(50)) * 5, values=[float(e) for e in range(5) for _ in range(50)], role="epoch")
    parted = split([loss(list(range(50)) * 5, values=falling * 5), epochs], CSV)
    assert len(parted.attempts) == 1
    assert parted.signals[0].steps.tolist() == list(range(250))


def test_many_crashes_of_different_length_are_attempts() -> None:
    steps = [*range(100), *range(40, 130), *range(125, 180), *range(90, 300)]
    parted = split([loss(steps)], CSV)
    assert [(a.first_step, a.resumed_from) for a in parted.attempts] == [(0, None), (40, 39), (125, 124), (90, 89)]


@given(st.lists(st.lists(st.integers(-50, 50), max_size=30), min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_steps_keep_the_promises(columns: list[list[int]]) -> None:
    parted = split([signal(f"s{i}", steps, role="loss" if i == 0 else None) for i, steps in enumerate(columns)], CSV)
    for before, after in zip(columns, parted.signals, strict=True):
        assert len(after) == len(before)
        assert after.starts[0] == 0
        assert list(after.starts) == sorted(after.starts)
        assert after.starts[-1] <= len(after)
        assert len(after.starts) in (1, len(parted.attempts))
        after.curve()
