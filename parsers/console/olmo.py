"""OLMo and OLMo-core: ``[step=10/739328,epoch=0]`` and below it one metric per line, ``    train/CrossEntropyLoss=11.25``."""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.olmo"

_HEAD = re.compile(rb"\[step=(\d{1,18}(?:,\d{3})*)/(\d{1,18}(?:,\d{3})*)(?:,\s?epoch=(\d+))?[^\]\n]*\]")
_METRIC = re.compile(rb" {4,16}([A-Za-z][^=\n]{0,200}?)=(" + NUMBER + rb")\s*$")


def _read(text: bytes) -> Line | None:
    head = _HEAD.match(text)
    if head is not None:
        epoch = (Field("epoch", *head.span(3)),) if head[3] else ()
        return Line((head.span(1),), (Field("@max_steps", *head.span(2)), *epoch))
    metric = _METRIC.match(text)
    return None if metric is None else Line((), (Field(metric[1].decode("utf-8", errors="replace"), *metric.span(2)),))


FORMAT = Format(
    title="OLMo",
    marks=(b"[step=",),
    gate=re.compile(rb"\[step=\d[\d,]*/\d[^\n]*|    (?<!     ) {0,12}[A-Za-z][^=\n]{0,200}=[-+.\dnNiI][^\n]*"),
    read=_read,
    headed=True,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with step heads and metrics below them."""
    if not logs.holds(source, re.compile(rb"\[step=\d[\d,]*/\d[\d,]*[^\]\n]*\][^\n]*\n\s{4,}[A-Za-z][^=\n]{0,200}=")):
        return None
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read heads and metrics."""
    logs.read((FORMAT,), source, sink)
