"""The manual: unknown causes first, then odd widths, then a page."""

from __future__ import annotations

import pytest

from forensics.causes import manual


@pytest.mark.parametrize(
    ("asked", "offered"),
    [("lr_to_high", "lr_too_high"), ("adam_stale", "adam_v_stale"), ("lr_rewarm", "lr_rewarm_or_jump"), ("scheduler", "resume_scheduler_lost")],
)
def test_an_unknown_cause_is_refused_with_close_ones(asked: str, offered: str) -> None:
    with pytest.raises(KeyError, match=offered):
        manual.page(asked)


@pytest.mark.parametrize("asked", ["", "zzzzzz", "\x00", "lr_too_high\n", "../causes"])
def test_what_is_close_to_nothing_is_refused_without_a_traceback_of_ours(asked: str) -> None:
    with pytest.raises(KeyError, match="no cause is called"):
        manual.text(asked)


def test_ids_are_grouped_by_family() -> None:
    families = [manual.page(i).family for i in manual.ids()]
    assert len(families) == len(set(manual.ids())) == 89
    assert [f for i, f in enumerate(families) if i == 0 or families[i - 1] != f] == list(manual.FAMILIES)


def test_a_page_is_cut_at_its_headings() -> None:
    page = manual._read("x", "X", "data", "One line.\n\nWhat happened\n-------------\nA\nB\n\nC\n\nFix\n  D - E\n", has_rule=False)
    assert page.summary == "One line."
    assert page.sections == (("What happened", "A B\n\nC"), ("Fix", "D - E"))


def test_pages_of_both_kinds() -> None:
    assert manual.page("lr_rewarm_or_jump").has_rule
    assert not manual.page("replica_desync").has_rule
    assert manual.page("replica_desync").title == "Replicas drifted apart"


@pytest.mark.parametrize("width", [20, 60, 96])
def test_text_keeps_its_width(width: int) -> None:
    lines = manual.text("nccl_hang", width).splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= max(width, *(len(h) for h in manual.HEADINGS))


def test_text_starts_with_the_summary_and_names_every_heading() -> None:
    page, text = manual.page("replica_desync"), manual.text("replica_desync")
    assert text.startswith(page.summary)
    assert [line for line in text.splitlines() if line in manual.HEADINGS] == list(manual.HEADINGS)
    assert "----" not in text


def test_a_page_without_its_docstring_says_why() -> None:
    page = manual._read("x", "X", "data", manual.STRIPPED, has_rule=True)
    assert "-OO" in page.summary
    assert page.sections == ()
