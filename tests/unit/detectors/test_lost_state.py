from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.detectors import lost_state
from forensics.model import Checkpoint, EventKind, Inspected, Run
from forensics.primitives.curves import Curves
from tests.unit.synthetic import curves_of


def run(*counts: tuple[int, int | None]) -> Run:
    """A short run with checkpoints of these steps and step counts of the optimizer."""
    made = curves_of({"loss": 2 + np.exp(-np.arange(600) / 100)}).run
    saved = tuple(Inspected(Checkpoint(f"{s}.pt", "torch zip", s, "step", None if c is None else (c, c))) for s, c in counts)
    return replace(made, checkpoints=saved)


def test_no_checkpoints_and_no_counts() -> None:
    assert lost_state.detect(Curves(run())) == []
    assert lost_state.detect(Curves(run((100, None), (200, None)))) == []


def test_counts_that_go_on_or_lag_are_no_loss() -> None:
    assert lost_state.detect(Curves(run((100, 100), (200, 200), (300, 297)))) == []
    assert lost_state.detect(Curves(run((100, 25), (200, 50)))) == []


def test_earlier_attempts_say_nothing() -> None:
    assert lost_state.detect(Curves(run((300, 300), (350, 50)), 1)) == []


def test_a_count_that_began_again() -> None:
    (event,) = lost_state.detect(Curves(run((350, 50), (250, 250), (300, 300), (400, 100))))
    assert (event.kind, event.onset_step) == (EventKind.RESTART, 300)
    assert "it is 50 in the checkpoint of step 350, and was 300 in that of step 300" in event.text
