"""DeepSpeed's own lines: ``[Rank 0] step=10, skipped=4, lr=[0.0001], mom=[(0.9, 0.999)]``.

``skipped`` counts from the beginning. The notices of the loss scaler are read out of every console log.
"""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.deepspeed"
SURE = 70
"""Less than the framework around DeepSpeed, which prints the loss."""

_LINE = re.compile(
    rb"step=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[(?P<lr>[^\]]*)\](?:, mom=\[\(?(?P<mom>" + NUMBER + rb"))?"
    rb"|steps: (?P<steps>\d+) loss: (?P<loss>" + NUMBER + rb") iter time \(s\): (?P<time>" + NUMBER + rb") samples/sec: (?P<rate>" + NUMBER + rb")"
)
_SPEED = re.compile(rb"(?:global_)?step=(\d+), [^\n]{0,200}?RunningAvgSamplesPerSec=(" + NUMBER + rb"), CurrSamplesPerSec=(" + NUMBER + rb")")
_NUMBER = re.compile(NUMBER)
_PARTS = (("loss", "loss"), ("iter time (s)", "time"), ("samples/sec", "rate"))


def _read(text: bytes) -> Line | None:
    speed = _SPEED.match(text)
    if speed is not None:
        return Line((speed.span(1),), (Field("RunningAvgSamplesPerSec", *speed.span(2)), Field("CurrSamplesPerSec", *speed.span(3))))
    found = _LINE.match(text)
    if found is None:
        return None
    if found["steps"]:
        return Line((found.span("steps"),), tuple(Field(name, *found.span(part)) for name, part in _PARTS))
    fields = [Field("skipped", *found.span("skipped"))]
    rates = list(_NUMBER.finditer(text, *found.span("lr")))
    fields += [Field("lr" if i == 0 else f"lr_group{i}", *m.span()) for i, m in enumerate(rates)]
    if found["mom"]:
        fields.append(Field("mom", *found.span("mom")))
    return Line((found.span("step"),), tuple(fields))


FORMAT = Format(
    title="DeepSpeed",
    marks=(b"step=", b"steps: "),
    gate=re.compile(rb"step(?:=\d+, (?:skipped=|[^\n]{0,200}?RunningAvgSamplesPerSec=)|s: \d+ loss: )[^\n]*"),
    read=_read,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with DeepSpeed's step lines."""
    return logs.claim(NAME, FORMAT, source, SURE)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the step lines."""
    logs.read((FORMAT,), source, sink)
