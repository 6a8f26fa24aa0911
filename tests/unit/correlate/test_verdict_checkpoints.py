from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forensics.correlate.verdict import verdict
from forensics.model import Checkpoint, Event, EventKind, Fault, Inspected, Run, Severity, TensorKind
from tests.unit.synthetic import curves_of


@pytest.fixture
def run() -> Run:
    fault = Fault("w", TensorKind.PARAM, "w: element [3] is -3000, the largest of the others 0.1", (3,), -3000.0)
    saved = (Inspected(Checkpoint("2.pt", "x", 200), {}), Inspected(Checkpoint("3.pt", "x", 300), {}, (fault,)), Inspected(Checkpoint("4.pt", "x", 400), {}))
    return replace(curves_of({"loss": 2 + np.exp(-np.arange(600) / 100)}).run, checkpoints=saved)


def alarm(step: int) -> Event:
    return Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", step, step)


def test_sound_checkpoints_are_no_news(run: Run) -> None:
    assert "checkpoint" not in verdict(replace(run, checkpoints=run.checkpoints[:1]), ())


def test_an_event_between_the_checkpoints_has_the_word(run: Run) -> None:
    assert "But the checkpoint" not in verdict(run, (alarm(250),))


def test_a_rotten_checkpoint_that_the_log_does_not_show(run: Run) -> None:
    for events in ((), (alarm(500),)):
        text = verdict(run, events)
        assert "But the checkpoint of step 300 is damaged, and the log shows nothing of it: w: element [3] is -3000" in text
        assert "the last sound one is that of step 200" in text
