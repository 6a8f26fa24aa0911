"""MosaicML Composer and llm-foundry: ``[batch=1/100]:`` and below it ``Train loss/train/total: 10.9736``, one metric per line.

Older versions repeat the head on every line, ``[epoch=0][batch=16/625]: loss/train/total: 7.1292``. Where epochs are
named, batches count within them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from forensics.model import IntArray
from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.composer"

_HEAD = re.compile(rb"\[(?:epoch=(?P<epoch>\d+)(?:/\d+)?\]\[)?batch=(?P<batch>\d+)/(?P<all>\d+)\]:")
_METRIC = re.compile(rb"\s*(?:(Train|Eval) )?([A-Za-z][^:\n]{0,200}?): (" + NUMBER + rb")(?=\s|$)")


def _read(text: bytes) -> Line | None:
    head = _HEAD.match(text)
    at = head.end() if head is not None else 0
    fields: list[Field] = []
    while (found := _METRIC.match(text, at)) is not None:
        part = "eval " if found[1] == b"Eval" and b"eval" not in found[2] else ""
        fields.append(Field(part + found[2].decode("utf-8", errors="replace"), *found.span(3)))
        at = found.end()
    if head is None:
        return Line((), tuple(fields)) if fields else None
    names = ("epoch", "batch", "all") if head["epoch"] else ("batch",)
    return Line(tuple(head.span(name) for name in names), tuple(fields))


def _step(axis: Sequence[IntArray]) -> IntArray:
    if len(axis) == 1:
        return axis[0]
    epoch, batch, batches = axis
    return np.maximum(epoch - min(int(epoch.min()), 1), 0) * batches + batch  # epochs counted from 1 since version 0.8


FORMAT = Format(
    title="Composer",
    marks=(b"batch=",),
    gate=re.compile(rb"\[(?:epoch=\d+(?:/\d+)?\]\[)?batch=\d+/\d+\]:[^\n]*|(?:Train|Eval) [A-Za-z][^:\n]{0,200}: [^\n]*"),
    read=_read,
    step=_step,
    headed=True,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with batch heads."""
    if not logs.holds(source, re.compile(rb"\[batch=\d+/\d+\]:|\[epoch=\d+(?:/\d+)?\]\[batch=\d+/\d+\]:")):
        return None
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read heads and metrics."""
    logs.read((FORMAT,), source, sink)
