"""nanoGPT: ``iter 10: loss 4.2231, time 120.33ms, mfu 3.11%`` and ``step 250: train loss 2.1034, val loss 2.2412``.

The first is the loss of one micro-batch times the accumulation, printed every ``log_interval``; the second averages over
``eval_iters`` batches. ``mfu -100.00%`` stands there before it is measured.
"""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.nanogpt"

_HEAD = re.compile(rb"(?:iter|step) (\d+): ")
_PAIR = re.compile(rb"((?:train |val )?loss|time|mfu|lr|norm|dt) (" + NUMBER + rb")(?:ms|s|%)?(?=[,\s|]|$)")
_UNITS = {"time": "time (ms)", "mfu": "mfu (%)"}


def _read(text: bytes) -> Line | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    fields = tuple(Field(_UNITS.get(name := m[1].decode(), name), *m.span(2)) for m in _PAIR.finditer(text, head.end()))
    return Line((head.span(1),), fields) if fields else None


FORMAT = Format(
    title="nanoGPT",
    marks=(b": loss ", b": train loss "),
    gate=re.compile(rb"(?:iter \d+: loss |step \d+: train loss )[^\n]*"),
    read=_read,
    fixed=True,
    unmeasured=frozenset({"mfu (%)"}),
    settings=re.compile(rb"^(?:Overriding: )?([a-z_]+) = (\S[^\n]{0,200})$", re.MULTILINE),
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with nanoGPT's lines."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read both kinds of line."""
    logs.read((FORMAT,), source, sink)
