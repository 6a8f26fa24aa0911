"""The post-mortem: names stay names, whatever characters they are made of."""

from __future__ import annotations

import io
import itertools
import re

import pytest

from forensics.model import Case
from forensics.reports import markdown


def rendered(case: Case) -> str:
    out = io.StringIO()
    markdown.render(case, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("logged", "written"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<img src=x>", "&lt;img src=x>"),
        ("# heading", r"\# heading"),
        ("1. item", r"1\. item"),
        ("- item", r"\- item"),
        ("[a](b)", r"\[a\](b)"),
        ("grad_norm", "grad_norm"),
        ("_x_", r"\_x\_"),
        ("@everyone", "&#64;everyone"),
        ("https://evil.example", "https&#58;//evil.example"),
        ("&lt;b>", "&amp;lt;b>"),
        ("0.97", "0.97"),
        ("\\", r"\\"),
    ],
)
def test_text_is_escaped(logged: str, written: str) -> None:
    assert markdown.text(logged) == written


def test_no_html_and_whole_tables(case: Case) -> None:
    text = rendered(case)
    assert "<" not in text
    rows = text.splitlines()
    for above, below in itertools.pairwise(rows):
        if above.startswith("|") and below.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", above)) == len(re.findall(r"(?<!\\)\|", below))


def test_sections_in_order(case: Case) -> None:
    text = rendered(case)
    wanted = ["# Post-mortem", "## Timeline", "## E1", "### Remedy", "## Not checked", "## Damaged input", "## Considered and rejected", "## Configuration"]
    places = [text.index(w) for w in wanted]
    assert places == sorted(places)
    assert "verysecret" not in text
    assert text == rendered(case)
    assert text.endswith("\n")


def test_empty_case(empty_case: Case) -> None:
    text = rendered(empty_case)
    assert "No event." in text
    assert "Nothing went wrong" in text
