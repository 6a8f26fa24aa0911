"""What is known of a cause that has no rule yet: its manual page, and what would have to be logged to see it."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.model import Part


@dataclass(frozen=True, slots=True)
class Unseen:
    """``needs`` are roles of the vocabulary or, in words, what no role covers; ``manual`` has the headings of every page."""

    id: str
    title: str
    family: str
    part: Part
    manual: str
    needs: tuple[str, ...]
    replay: str
