"""The checkpoint to go back to: names that are none, none clean, and what each kind of cause leaves between it and the event."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.advice.checkpoints import Saved, find_saved, go_back_to, step_of
from forensics.model import Attempt, Case, Event, EventKind, Hypothesis, Part, RunInfo, Severity, SignalInfo

SAVED = tuple(Saved(f"checkpoint-{s}", s) for s in range(0, 6000, 250))


def back(cause: str | None, onset: int = 5100, *, saved: tuple[Saved, ...] = SAVED, severity: str = "warning", resumed: int | None = None) -> object:
    hypotheses = () if cause is None else (Hypothesis(cause, "title", 0.9, Part.TRIGGER),)
    event = Event(EventKind.SPIKE, Severity(severity), 0.9, "loss", onset, onset, "E1", hypotheses=hypotheses)
    attempts = () if resumed is None else (Attempt(0, resumed), Attempt(resumed + 1, 9999, resumed))
    case = Case("0", RunInfo("run", "run", first_step=0, attempts=attempts), (SignalInfo("loss", "loss", 9999, 0, 9999, 1.0, 0),), "", (event,))
    found = go_back_to(case, event, saved)
    return None if found is None else (found.step, found.path)


@pytest.mark.parametrize("name", ["events.out.tfevents.1700000000.host", "trainer_state.json", "log-500.txt", "step.pt", "README"])
def test_names_that_are_no_checkpoints(name: str) -> None:
    assert step_of(name) is None


@pytest.mark.parametrize(
    ("name", "folder", "step"),
    [
        ("checkpoint-500", True, 500),
        ("iter_0001000", True, 1000),
        ("global_step1200", True, 1200),
        ("epoch=3-step=1200.ckpt", False, 1200),
        ("step-00100.pt", False, 100),
        ("ckpt_40.pth", False, 40),
        ("1200.pt", False, 1200),
        ("version_3", True, None),
    ],
)
def test_names(name: str, folder: bool, step: int | None) -> None:
    assert step_of(name, is_folder=folder) == step


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert find_saved(tmp_path / "none") == ()


def test_checkpoints_below_a_run(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for name in ("step_20.pt", "step_100.pt", "notes.txt"):
        (tmp_path / "checkpoints" / name).write_bytes(b"")
    (tmp_path / "checkpoint-50").mkdir()
    assert [s.step for s in find_saved(tmp_path)] == [20, 50, 100]


def test_an_info_event_needs_no_going_back() -> None:
    assert back("tail_grad_growth", severity="info") is None


def test_none_is_clean() -> None:
    assert back("bad_batch_outlier", saved=(Saved("c", 6000),)) == (5098, None)
    assert back("bad_batch_outlier", saved=()) == (5098, None)
    assert back("bad_batch_outlier", onset=1, saved=()) == (0, None)


def test_a_bad_batch_needs_only_what_came_before_it() -> None:
    assert back("bad_batch_outlier") == (5000, "checkpoint-5000")


def test_a_slow_cause_goes_back_further() -> None:
    assert back("attention_logit_growth") == (4500, "checkpoint-4500")


def test_an_unknown_cause_leaves_a_hundred_steps() -> None:
    assert back(None) == (5000, "checkpoint-5000")
    assert back(None, onset=5050) == (4750, "checkpoint-4750")


def test_a_lost_state_loads_the_same_checkpoint_again() -> None:
    assert back("resume_optimizer_lost", resumed=5000) == (5000, "checkpoint-5000")


def test_a_damaged_checkpoint_is_passed_over() -> None:
    hypotheses = (Hypothesis("bad_batch_outlier", "title", 0.9, Part.TRIGGER),)
    event = Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", 5100, 5100, "E1", hypotheses=hypotheses)
    case = Case("0", RunInfo("run", "run", first_step=0), (), "", (event,))
    found = go_back_to(case, event, SAVED, lambda s: "w: element [3] is 1e30" if s.step == 5000 else None)
    assert found is not None
    assert found.step == 4750
    assert "the one of step 5000 is damaged: w: element [3]" in found.why
    none = go_back_to(case, event, SAVED, lambda _: "torn")
    assert none is not None
    assert none.path is None
