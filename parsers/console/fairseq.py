"""fairseq and metaseq: ``| INFO | train_inner | {"epoch": 1, "loss": "9.276", "num_updates": "10", ...}`` and the ``simple`` form.

Numbers are JSON strings. A ``train`` line sums up an epoch, a ``valid`` line is a validation; in the ``simple`` form their
names get the prefix that the JSON form has.
"""

from __future__ import annotations

import re

from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.fairseq"

_HEAD = re.compile(rb"(train_inner|train|valid\w*|test)\s*\| (?=\{|epoch )")
_JSON = re.compile(rb"\"([\w./@-]+)\": \"?(" + NUMBER + rb")(?=[\",}])")
_SIMPLE = re.compile(rb"[\s|,]([A-Za-z_][\w./@-]*)[ =](" + NUMBER + rb")(?=[\s,|:]|$)")
_EPOCH = re.compile(rb"epoch (\d+)")
_AXIS = ("num_updates", "train_num_updates", "valid_num_updates", "test_num_updates")


def _read(text: bytes) -> Line | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    kind = head[1].decode()
    prefix = "" if kind == "train_inner" else f"{kind}_"
    fields: list[Field] = []
    if text[head.end() : head.end() + 1] == b"{":
        fields = [Field(m[1].decode(), *m.span(2)) for m in _JSON.finditer(text, head.end())]
    else:
        epoch = _EPOCH.match(text, head.end())
        if epoch is not None:
            fields.append(Field("epoch", *epoch.span(1)))
            fields += [Field(prefix + m[1].decode(), *m.span(2)) for m in _SIMPLE.finditer(text, epoch.end())]
    axis = next((f for f in fields if f.name in _AXIS or f.name == f"{prefix}num_updates"), None)
    rest = tuple(f for f in fields if f is not axis)
    return Line((), rest) if axis is None and rest else Line(((axis.start, axis.stop),), rest) if axis is not None else None


FORMAT = Format(
    title="fairseq",
    marks=(b"train_inner | ", b"num_updates"),
    gate=re.compile(rb"(?:train_inner|train|valid\w*|test)\s*\| (?:\{\"|epoch \d)[^\n]*"),
    read=_read,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with fairseq's lines."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the lines; what is said about overflows is read out of every console log."""
    logs.read((FORMAT,), source, sink)
