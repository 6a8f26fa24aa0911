"""The view: order, wording, and lenient reading of what newer versions may add."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from forensics.model import Case, EventKind
from forensics.reports import wording
from forensics.reports.view import MOST_CHARTS, view


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (math.nan, "NaN"),
        (-math.inf, "-Inf"),
        (0.0, "0"),
        (3e-4, "0.0003"),
        (1.2345e-7, "1.23e-07"),
        (2.34567, "2.346"),
        (65536.0, "65,536"),
        (12345.678, "12,346"),
        (1.5e12, "1.5e+12"),
        (10**30, "1e+30"),
        (True, "yes"),
        ("text", "text"),
    ],
)
def test_numbers(value: float | int | str | None, text: str) -> None:
    assert wording.number(value) == text


def test_plain_text_is_cut_and_cleaned() -> None:
    assert wording.line("a\x00\x1b[1mb\ud800\u200b\n c") == "a\ufffd\ufffd[1mb\ufffd\ufffd c"
    long = wording.line("h" * 1000 + "t" * 1000, 100)
    assert len(long) <= 100
    assert long.startswith("hhh")
    assert long.endswith("ttt")


def test_every_kind_has_a_name() -> None:
    assert set(wording.KINDS) == set(EventKind)


def test_events_are_ordered_by_severity_then_onset(case: Case) -> None:
    assert [e.id for e in view(case).events] == ["E2", "E1", "E3", "E4", "E5"]


def test_events_without_an_id_get_one_by_their_place(case: Case) -> None:
    nameless = replace(case, events=tuple(replace(e, id="") for e in case.events))
    assert [e.id for e in view(nameless).events] == ["E2", "E1", "E3", "E4", "E5"]


def test_charts_start_with_the_signals_that_tell_most(case: Case) -> None:
    page = view(case)
    assert [c.role for c in page.charts][:4] == ["loss", "lr", "grad_norm", "loss_scale"]
    spike = page.events[1]
    assert page.charts[spike.chart or 0].signal == "train/loss"
    assert spike.hypotheses[0].supporting[0].chart == 1


def test_too_many_charts_are_counted(case: Case) -> None:
    extra = {f"s{i}": case.series["lr"] for i in range(40)}
    page = view(replace(case, series={**extra, **case.series}))
    assert len(page.charts) == MOST_CHARTS
    assert page.undrawn == 46 - MOST_CHARTS
    assert page.charts[0].signal == "train/loss"


def test_an_undetermined_event_has_no_best_explanation(case: Case) -> None:
    page = view(case)
    assert page.events[0].best is None
    assert page.events[0].hypotheses
    assert page.events[1].best is not None


def test_moments_do_not_last_to_the_end_of_the_run(case: Case) -> None:
    by_id = {e.id: e for e in view(case).events}
    assert by_id["E3"].last_step == 2400
    assert by_id["E2"].last_step == 3999
    assert by_id["E3"].outcome == ""
    assert by_id["E2"].outcome == "did not recover"


@pytest.mark.parametrize(
    "replay",
    [{"experiments": 7}, {"experiments": [1, "x", {"id": 3}]}, {"verdict": None, "reproduced": "maybe"}, {"culprits": {"samples": [1, 2], "module": None}}],
)
def test_replays_of_an_unknown_shape_are_shown_as_far_as_they_go(case: Case, replay: dict[str, object]) -> None:
    event = replace(case.events[0], replay=replay)
    shown = view(replace(case, events=(event,))).events[0].replay
    assert shown is not None
    assert shown.reproduced == "not decided"


def test_coverage_counts(case: Case, empty_case: Case) -> None:
    assert view(case).coverage == (
        "Read 24,012 points of 6 signals (5 recognised) from 2 sources; steps 0 to 3,999; 2 attempts; 1 damaged part not read; 2 things not checked."
    )
    assert view(empty_case).coverage == "Read 0 points of 0 signals (0 recognised); no steps; nothing damaged."
