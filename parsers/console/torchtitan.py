"""torchtitan: ``step: 10  loss:  7.8342  grad_norm:  1.2642  memory: 52.53GiB(66.33%)  tps: 11,527  tflops: 208.71  mfu: 21.10%``."""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.torchtitan"

_STEP = re.compile(rb"(validate )?(?:[Ss]tep):\s*(\d+)\s")
_PAIR = re.compile(rb"(?<![\w/.-])([A-Za-z][\w/.-]*(?:\([\w/]{1,8}\))?):\s*(" + NUMBER + rb")(GiB|%)?(?:\((" + NUMBER + rb")%\))?(?=[\s|]|$)")
_WITH_UNIT = frozenset({b"memory", b"mfu"})


def _read(text: bytes) -> Line | None:
    step = _STEP.match(text)
    if step is None:
        return None
    part = "validation " if step[1] else ""
    fields: list[Field] = []
    for found in _PAIR.finditer(text, step.end()):
        if found[1] in _WITH_UNIT and not found[3]:  # cut off
            continue
        unit = f" ({found[3].decode()})" if found[3] else ""
        fields.append(Field(f"{part}{found[1].decode()}{unit}", *found.span(2)))
        if found[4]:
            fields.append(Field(f"{part}{found[1].decode()} (%)", *found.span(4)))
    return Line((step.span(2),), tuple(fields)) if fields else None


FORMAT = Format(
    title="torchtitan",
    marks=(b"  loss: ", b" | loss: "),
    gate=re.compile(rb"(?:validate step|step|Step):\s*\d+\s+(?:\| )?loss:\s[^\n]*"),
    read=_read,
    fixed=True,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with torchtitan's lines."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the step lines; every process may have written them."""
    logs.read((FORMAT,), source, sink)
