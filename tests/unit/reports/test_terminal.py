"""The terminal view: 80 columns, no escape codes into a pipe, hostile text as text."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len

from forensics.model import Case
from forensics.reports import terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rendered(case: Case, out: io.StringIO | None = None) -> str:
    out = out or io.StringIO()
    terminal.render(case, out)
    return out.getvalue()


def test_no_line_is_wider_than_80(case: Case) -> None:
    long = replace(case, verdict="x" * 500, run=replace(case.run, name="n" * 300, path="/p" * 300))
    for each in (case, long):
        assert max(cell_len(row) for row in rendered(each).splitlines()) <= 80


def test_hostile_text_stays_text(case: Case, hostile: str, markup: str) -> None:
    text = rendered(case)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert markup in text
    assert hostile in text


def test_an_output_that_knows_only_ascii(case: Case) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", newline="")
    terminal.render(replace(case, verdict="Überlauf 損失"), out)
    out.flush()
    assert rb"\xdcberlauf" in raw.getvalue()


def test_empty_case(empty_case: Case) -> None:
    text = rendered(empty_case)
    assert text.startswith("Nothing went wrong in what was read.\n")
    assert "no steps" in text


def test_order_and_content(case: Case) -> None:
    text = rendered(case)
    flat = " ".join(text.split())
    assert text.startswith("The loss became NaN at step 3,700")
    order = ["E2 critical", "E1 warning", "E3 warning", "also seen", "Not checked", "Damaged input", "Read 24,012 points"]
    places = [flat.index(words) for words in order]
    assert places == sorted(places)
    assert "Learning rate rewarmed or jumped [lr_rewarm_or_jump] score 0.91" in flat
    assert "lr = 0.0012, step 1,800, metrics.csv#1802" in flat
    assert "a fourth fact" not in flat
    assert "88120 (step 1,800)" in flat
    assert "0.22 One batch unlike the others" in flat
    assert "undetermined: no explanation stands out" in flat
    assert "undetermined: no cause in the catalogue fits" in flat


def test_colour_only_where_a_terminal_wants_it(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b[1;31m" in rendered(case, Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in rendered(case, Terminal())


def test_same_case_same_bytes(case: Case) -> None:
    assert rendered(case) == rendered(case)
