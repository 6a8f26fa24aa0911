"""What to skip: no data fault, too much to list, single batches, repeated ones, wide ranges, replays, and the formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forensics.advice.skip import FORMATS, MOST, batches_to_skip
from forensics.cli.main import main
from forensics.model import BatchRef, Case, Event, EventKind, Hypothesis, Part, RunInfo, Severity, SignalInfo
from forensics.reports import json_report


def event(cause: str | None, onset: int = 900, **more: object) -> Event:
    hypotheses = () if cause is None else (Hypothesis(cause, "title", 0.8, Part.TRIGGER),)
    known: dict[str, object] = {"peak_step": onset, "id": "E1", "hypotheses": hypotheses, **more}
    return Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", onset, **known)  # type: ignore[arg-type]


def case(*events: Event, every: float = 1.0, first: int = 0) -> Case:
    return Case("0", RunInfo("run", "run", first_step=first), (SignalInfo("loss", "loss", 1500, first, 1499, every, 0),), "", events)


def test_nothing_to_skip_where_the_data_are_not_to_blame() -> None:
    assert batches_to_skip(case(event("lr_too_high"))) == ()
    assert batches_to_skip(case(event(None))) == ()
    assert batches_to_skip(case(event("bad_batch_outlier", id="E1"), event("lr_too_high", id="E2")), "E2") != ()


def test_an_event_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        batches_to_skip(case(event("bad_batch_outlier")), "E7")


def test_a_data_cause_behind_another_is_no_reason() -> None:
    found = event("lr_too_high")
    second = Hypothesis("bad_batch_outlier", "title", 0.3, Part.TRIGGER)
    assert batches_to_skip(case(replace(found, hypotheses=(*found.hypotheses, second)))) == ()
    undecided = replace(found, hypotheses=(*found.hypotheses, second), undetermined=True)
    (skip,) = batches_to_skip(case(undecided))
    assert not skip.exact


def test_too_many_steps_are_not_listed() -> None:
    skips = batches_to_skip(case(event("degenerate_data_pocket", end_step=10**15)))
    assert FORMATS["range"](skips) == f"900-{10**15}"
    with pytest.raises(ValueError, match="--format range"):
        FORMATS["megatron"](skips)


def test_one_bad_batch_and_the_one_before() -> None:
    batches = (BatchRef(899, 41), BatchRef(900, 42))
    (skip,) = batches_to_skip(case(event("bad_batch_outlier", batches=batches)))
    assert (skip.ranges, skip.batch_ids, skip.exact, skip.go_back_to) == (((899, 900),), (41, 42), True, 898)


def test_a_nan_that_went_is_one_batch() -> None:
    found = replace(event("nan_in_input", batches=(BatchRef(899, 41), BatchRef(900, 42))), kind=EventKind.NON_FINITE, recovered=True)
    (skip,) = batches_to_skip(case(found))
    assert (skip.ranges, skip.batch_ids) == (((900, 900),), (42,))


def test_a_batch_that_came_back_is_skipped_alone() -> None:
    events = [event("bad_batch_outlier", s, id=f"E{s}", batches=(BatchRef(s - 1, s), BatchRef(s, 7))) for s in (300, 900)]
    assert [(s.ranges, s.batch_ids) for s in batches_to_skip(case(*events))] == [(((300, 300),), (7,)), (((900, 900),), (7,))]


def test_between_logged_steps_all_are_suspects() -> None:
    (skip,) = batches_to_skip(case(event("bad_batch_outlier"), every=10.0))
    assert skip.ranges == ((890, 900),)


def test_the_published_practice_where_the_batch_is_unknown() -> None:
    (skip,) = batches_to_skip(case(event("batch_state_interaction")))
    assert skip.ranges == ((800, 1000),)
    assert skip.go_back_to == 799
    (longer,) = batches_to_skip(case(event("batch_state_interaction", peak_step=2000)))
    assert longer.ranges == ((800, 800 + MOST - 1),)
    (early,) = batches_to_skip(case(event("batch_state_interaction", 30), first=1))
    assert early.ranges[0][0] == 1


def test_a_replay_outweighs_the_logs() -> None:
    assert batches_to_skip(case(event("bad_batch_outlier", replay={"verdict": "state_step_size"}))) == ()
    (skip,) = batches_to_skip(case(event("lr_too_high", replay={"verdict": "batch_state"})))
    assert skip.ranges == ((800, 1000),)
    (skip,) = batches_to_skip(case(event("lr_too_high", replay={"verdict": "data"})))
    assert skip.exact


def test_formats() -> None:
    skips = batches_to_skip(case(event("bad_batch_outlier"), event("bad_batch_outlier", 901, id="E2"), event("bad_batch_outlier", 40, id="E3")))
    assert FORMATS["megatron"](skips) == "--iterations-to-skip 39 40 899 900 901"
    assert FORMATS["range"](skips) == "39-40 899-901"
    assert json.loads(FORMATS["lightning"](skips)) == [39, 40, 899, 900, 901]
    assert json.loads(FORMATS["json"](skips))["ranges"] == [[39, 40], [899, 901]]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.json"
    with path.open("w") as file:
        json_report.render(case(event("bad_batch_outlier")), file)
    assert main(["skip", str(path), "--event", "E9"]) == 2
    assert "events in it: E1" in capsys.readouterr().err
    assert main(["skip", str(path), "--format", "megatron"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "--iterations-to-skip 899 900\n"
    assert "step 898 or before" in shown.err
    assert main(["skip", str(path), "--format", "lightning", "--out", str(tmp_path / "skip_batches.json")]) == 0
    assert json.loads((tmp_path / "skip_batches.json").read_text()) == [899, 900]


def test_the_command_without_a_data_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.json"
    with path.open("w") as file:
        json_report.render(case(event("lr_too_high")), file)
    assert main(["skip", str(path), "--format", "megatron"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "nothing to skip" in shown.err
