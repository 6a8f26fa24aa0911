"""The manual: one page for every cause of the catalogue, with or without a rule, under the same headings.

The page of a cause with a rule is the docstring of its module; the others stand in ``forensics.causes.unseen``.
"""

from __future__ import annotations

import difflib
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache

from forensics.causes.catalogue import RULES
from forensics.causes.unseen import UNSEEN

HEADINGS = (
    "What happened",
    "How it shows in logs",
    "What would contradict it",
    "Looks like, but is not",
    "How to confirm",
    "Fix",
    "References",
)
"""The headings of every page, in this order."""

FAMILIES = ("optimization", "data", "precision", "architecture", "resume", "hardware", "rl")
"""Families in the order of the catalogue."""

WIDTH = 96
"""Columns of a plain page: fits a terminal, and a quoted mail."""

CLOSE = 0.5
"""Similarity from which an id is offered for one that does not exist."""

STRIPPED = "The pages of causes with a rule are docstrings, and this interpreter was started without them (-OO)."


@dataclass(frozen=True, slots=True)
class ManualPage:
    """``sections`` are (heading, text) in the order of HEADINGS; paragraphs of a text are separated by an empty line."""

    id: str
    title: str
    family: str
    summary: str
    sections: tuple[tuple[str, str], ...]
    has_rule: bool


def page(cause_id: str) -> ManualPage:
    """The page of a cause. Raises KeyError, with the ids that come close, where there is no such cause."""
    pages = _pages()
    if cause_id not in pages:
        close = difflib.get_close_matches(cause_id, pages, n=5, cutoff=CLOSE) or [i for i in pages if cause_id and cause_id in i][:5]
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise KeyError(f"no cause is called {cause_id!r}{hint}")
    return pages[cause_id]


def ids() -> tuple[str, ...]:
    """All ids of the catalogue, family by family."""
    return tuple(_pages())


def text(cause_id: str, width: int = WIDTH) -> str:
    """The page as plain text: the summary, then every heading with its indented text. Raises KeyError as ``page`` does."""
    found = page(cause_id)
    blocks = [textwrap.fill(found.summary, width)]
    for heading, body in found.sections:
        paragraphs = (textwrap.fill(p, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False) for p in body.split("\n\n"))
        blocks.append(heading + "\n" + "\n\n".join(paragraphs))
    return "\n\n".join(blocks) + "\n"


@cache
def _pages() -> dict[str, ManualPage]:
    found = [_read(r.INFO.id, r.INFO.title, r.INFO.family, r.__doc__ or STRIPPED, has_rule=True) for r in RULES]
    found += [_read(u.id, u.title, u.family, u.manual, has_rule=False) for u in UNSEEN]
    return {p.id: p for p in sorted(found, key=lambda p: (FAMILIES.index(p.family), p.id))}


def _read(cause_id: str, title: str, family: str, source: str, *, has_rule: bool) -> ManualPage:
    """Cut a page at its headings. A line under a heading that only underlines it is dropped."""
    summary: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    for line in inspect.cleandoc(source).splitlines():
        if line in HEADINGS:
            sections.append((line, []))
        elif sections and set(line) == {"-"}:
            continue
        else:
            (sections[-1][1] if sections else summary).append(line)
    return ManualPage(cause_id, title, family, _paragraphs(summary), tuple((heading, _paragraphs(lines)) for heading, lines in sections), has_rule)


def _paragraphs(lines: list[str]) -> str:
    """Lines joined to paragraphs of one line each, with an empty line between them."""
    return "\n\n".join(" ".join(block.split()) for block in "\n".join(lines).split("\n\n") if block.strip())
