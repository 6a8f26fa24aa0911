"""llm.c: ``step 1/19560 | loss 11.009 (+nanz)| norm 15.3 (+nanz)| lr 4.29e-07 | 3994.72 ms | 33.8% bf16 MFU | 131245 tok/s``.

Its main.log says the same as ``s:100 trl:4.3 lr:0.000087 norm:1.2`` and ``s:100 tel:4.4``. The z-scores in parentheses
compare a value with its recent past; ``nanz`` means there was none yet.
"""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.llmc"

UNITS = {"ms": "step time (ms)", "MFU": "MFU (%)", "tok/s": "tok/s"}
"""The numbers that stand before a unit and have no name."""

_STEP = re.compile(rb"step\s+(\d+)/(\d+) \|")
_PART = re.compile(
    rb"(?P<name>(?:train )?loss|norm|lr)\s+(?P<value>" + NUMBER + rb")(?= *(?:[|(]|$))(?: \((?P<z>[-+](?:\d+(?:\.\d*)?|nan|inf))z\))?"
    rb"|(?<![\w.])(?P<size>" + NUMBER + rb")%? ?(?:\w{1,8} )?(?P<unit>ms|MFU|tok/s)(?![\w/])"
)
_SHORT = re.compile(rb"(trl|tel|lr|norm|eval):(" + NUMBER + rb")(?=\s|$)")
_AFTER = re.compile(rb"(val loss|HellaSwag: \d+/\d+ =) (" + NUMBER + rb")")


def _read(text: bytes) -> Line | None:
    step = _STEP.match(text)
    if step is not None:
        return Line((step.span(1),), (Field("@max_steps", *step.span(2)), *_parts(text, step.end())))
    if text.startswith(b"s:"):
        fields = tuple(Field(m[1].decode(), *m.span(2)) for m in _SHORT.finditer(text))
        return Line(((2, text.index(b" ")),), fields) if fields else None
    after = _AFTER.match(text)
    return None if after is None else Line((), (Field(after[1].decode().partition(":")[0], *after.span(2)),))


def _parts(text: bytes, start: int) -> tuple[Field, ...]:
    fields: list[Field] = []
    for found in _PART.finditer(text, start):
        if found["name"]:
            fields.append(Field(found["name"].decode(), *found.span("value")))
            if found["z"]:
                fields.append(Field("", *found.span("z")))
        else:
            fields.append(Field(UNITS[found["unit"].decode()], *found.span("size")))
    return tuple(fields)


FORMAT = Format(
    title="llm.c",
    marks=(b" | loss ", b" | train loss ", b" trl:", b" tel:", b"val loss "),
    gate=re.compile(rb"s(?:tep\s+\d+/\d+ \| (?:train )?loss |:\d+ (?:trl|tel|eval):)[^\n]*|(?:val loss |HellaSwag: \d+/\d+ = )[^\n]*"),
    read=_read,
    fixed=True,
    settings=re.compile(rb"^\| ([\w() ]{1,21}?) *\| (\S.{0,49}?) *\|$", re.MULTILINE),
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with llm.c's step lines."""
    claim = logs.claim(NAME, FORMAT, source)
    return claim if claim is None or _has_steps(source) else None


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the step lines and what was evaluated between them."""
    logs.read((FORMAT,), source, sink)


def _has_steps(source: Source) -> bool:
    """``val loss 4.2`` alone is anybody's."""
    return logs.holds(source, re.compile(rb"step\s+\d+/\d+ \| (?:train )?loss |(?:^|\n)s:\d+ (?:trl|tel):"))
