"""Numbers that do not change in half precision: rounded away, a float32 copy, no checkpoints, another kind of event."""

from __future__ import annotations

from dataclasses import replace

from cause_events import ask
from cause_runs import AT, Story, holds, silent

from forensics.causes.precision import bf16_update_stall as rule
from forensics.model import Checkpoint, EventKind, Inspected, Run, TensorChange, TensorInfo, TensorKind


def run(unchanged: int, *more: TensorInfo) -> Run:
    tensors = (TensorInfo("w", TensorKind.PARAM, (100,), "bfloat16"), *more)
    moved = TensorChange("w", TensorKind.PARAM, 100, 1.0, 1.0, 0.1, unchanged, 0.1, (0,), 0, 0)
    saved = (Inspected(Checkpoint("a.pt", "x", AT - 100), {}), Inspected(Checkpoint("b.pt", "x", AT + 100, tensors=tensors), {}, (), (moved,), AT - 100))
    return replace(Story().run(), checkpoints=saved)


def test_numbers_that_are_rounded_away() -> None:
    found = ask(rule, run(80), EventKind.PLATEAU)
    assert holds(found)
    assert "80% of the numbers" in found.supporting[0].text


def test_a_copy_or_numbers_that_move() -> None:
    assert silent(ask(rule, run(80, TensorInfo("w.master", TensorKind.OTHER, (100,), "float32")), EventKind.PLATEAU))
    assert silent(ask(rule, run(20), EventKind.PLATEAU))


def test_another_kind_of_event() -> None:
    assert silent(ask(rule, run(80), EventKind.SPIKE))


def test_checkpoints_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert found.missing
