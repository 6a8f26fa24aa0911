"""Messages between the records of a log: overflows of the loss scale, and what ended the process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

OVERFLOW_MARKS = (b"Attempted loss scale", b"radient overflow", b"dynamic loss scale from")
"""A block without any of these holds no notice: a literal search costs next to nothing."""

END_MARKS = (
    b"CUDA out of memory",
    b"slurmstepd: error",
    b"Traceback (most recent call last)",
    b"Watchdog caught collective",
    b"Segmentation fault",
    b"Minimum loss scale reached",
)
MAX_ENDS = 20
"""Messages kept of one log: the first ones say what happened, the rest repeat it from every process."""
TEXT_LIMIT = 300
RANK_REACH = 80
"""How far before the message of a loss scaler its process names itself."""

_TO = rb"(?P<to{}>\d[\d.]*(?:e[+-]?\d+)?)"
_NOTICE = re.compile(
    rb"Attempted loss scale: (?P<from>\d[\d.]*(?:e[+-]?\d+)?), (?:but hysteresis is|reducing to " + _TO.replace(b"{}", b"1") + rb")"
    rb"|Gradient overflow\. {1,2}Skipping step(?:, loss scaler \d+ reducing loss scale to " + _TO.replace(b"{}", b"2") + rb")?"
    rb"|gradient overflow detected, ignoring gradient(?:, setting loss scale to: " + _TO.replace(b"{}", b"3") + rb")?"
    rb"|(?P<grown>Increasing dynamic loss scale from) \d[\d.]* to " + _TO.replace(b"{}", b"4")
)
_RANK = re.compile(rb"[Rr]ank (\d{1,6})")


@dataclass(frozen=True, slots=True)
class Notice:
    """A skipped step, or (``skipped`` false) a loss scale that grew.

    ``scale`` is the new one where it is said, ``rank`` the process that wrote it where it names itself. ``text`` tells
    repetitions by other processes; ``line`` is 1-based.
    """

    offset: int
    skipped: bool
    scale: float | None
    rank: int | None
    text: bytes
    line: int = 0

    def repeats(self, before: Notice) -> bool:
        """Whether this is the same message from another process: a scale is reduced from one value only once in a row."""
        return self.rank is None and self.text == before.text and self.scale is not None and not self._at_floor

    @property
    def _at_floor(self) -> bool:
        found = re.search(rb"scale: ([\d.e+-]+), reducing to ([\d.e+-]+)", self.text)
        return found is not None and found[1].rstrip(b".") == found[2].rstrip(b".")


def notices(data: bytes) -> Iterator[Notice]:
    """What DeepSpeed, apex, fairseq and metaseq say about the loss scale."""
    if not any(mark in data for mark in OVERFLOW_MARKS):
        return
    for found in _NOTICE.finditer(data):
        start = found.start()
        before = data[max(data.rfind(b"\n", 0, start) + 1, start - RANK_REACH) : start]
        rank = _RANK.findall(before)
        to = next((found[name] for name in ("to1", "to2", "to3", "to4") if found[name]), None)
        scale = float(to.rstrip(b".")) if to and to.count(b".") < 2 + to.endswith(b".") else None
        yield Notice(start, found["grown"] is None, scale, int(rank[-1]) if rank else None, found[0])


def endings(data: bytes) -> Iterator[tuple[int, str]]:
    """(offset, line) of messages that tell why a process ended."""
    for mark in END_MARKS:
        place = data.find(mark)
        for _ in range(MAX_ENDS):
            if place < 0:
                break
            stop = data.find(b"\n", place, place + TEXT_LIMIT)
            yield place, data[place : stop if stop >= 0 else place + TEXT_LIMIT].decode("utf-8", errors="replace").strip()
            place = data.find(mark, place + len(mark))
