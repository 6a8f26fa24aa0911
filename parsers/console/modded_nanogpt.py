"""modded-nanogpt: ``step:947/3000 train_loss:5.2 train_time:213661ms step_avg:225.62ms``, after the source of the script.

``step_avg:nanms`` stands there until steps are timed; it is no loss.
"""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.modded_nanogpt"

_STEP = re.compile(rb"step:(\d+)/(\d+)")
_PAIR = re.compile(rb" (\w+):([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf))(?:ms|s|MiB)?(?=\s|$)")


def _read(text: bytes) -> Line | None:
    step = _STEP.match(text)
    if step is None:
        return None
    fields = tuple(Field(m[1].decode(), *m.span(2)) for m in _PAIR.finditer(text, step.end()))
    return Line((step.span(1),), (Field("@max_steps", *step.span(2)), *fields)) if fields else None


FORMAT = Format(
    title="modded-nanogpt",
    marks=(b" step_avg:", b" train_time:"),
    gate=re.compile(rb"step:\d+/\d+ (?:train_loss|val_loss|train_time):[^\n]*"),
    read=_read,
    fixed=True,
    unmeasured=frozenset({"step_avg"}),
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with the step lines, however much source code comes first."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the step lines."""
    logs.read((FORMAT,), source, sink)
