"""Megatron-LM, Megatron-DeepSpeed and NeMo: ``iteration 31219/ 115311 | consumed samples: 47778736 | ... | lm loss: 5.1E+00 |``.

Every number is followed by a bar, so a number that was cut is told from a whole one; NeMo 2 leaves out the last bar. A line
whose iterations were all skipped has no loss.
"""

from __future__ import annotations

import re

from forensics.parsers.console import deepspeed, logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.megatron"

_STEP = re.compile(rb"iteration\s+(\d+)/\s*(\d+) \|")
_HELD_OUT = re.compile(rb"(validation|valid|test|evaluation) loss at (?:iteration (\d+))?[^|]*\|")
_PART = re.compile(rb"\s{0,40}([^|:]{0,120}[^|:\s])\s{0,9}:\s{0,40}(" + NUMBER + rb")\s{0,40}")


def _read(text: bytes) -> Line | None:
    step = _STEP.match(text)
    if step is not None:
        return Line((step.span(1),), (Field("@max_steps", *step.span(2)), *_pairs(text, step.end(), "")))
    held_out = _HELD_OUT.match(text)
    if held_out is None:
        return None
    part = "test " if b"test" in held_out[0] else "validation "
    return Line((held_out.span(2),) if held_out[2] else (), _pairs(text, held_out.end(), part))


def _pairs(text: bytes, start: int, part: str) -> tuple[Field, ...]:
    fields: list[Field] = []
    while start < len(text):
        stop = text.find(b"|", start)
        closed = stop >= 0 or b"| global_step: " in text
        stop = stop if stop >= 0 else len(text)
        found = _PART.fullmatch(text, start, stop)
        if found is not None and closed:
            fields.append(Field(part + _name(found[1]), *found.span(2)))
        start = stop + 1
    return tuple(fields)


def _name(text: bytes) -> str:
    return text.decode("utf-8", errors="replace").removesuffix(" value")


FORMAT = Format(
    title="Megatron",
    marks=(b"iteration ",),
    gate=re.compile(rb"iteration\s+\d+/\s*\d+ \|[^\n]*|(?:validation|valid|test|evaluation) loss at [^|\n]{1,200}\|[^\n]*"),
    read=_read,
    fixed=True,
    settings=re.compile(rb"^(?:\[?\w{0,20}\]?:)?  ([A-Za-z]\w{0,80}) \.{3,} (.{0,300})$", re.MULTILINE),
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with iteration lines."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the iteration lines, and those that DeepSpeed writes between them."""
    logs.read((FORMAT, deepspeed.FORMAT), source, sink)
