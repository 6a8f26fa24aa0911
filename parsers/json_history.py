"""One JSON document that is a log: a list of rows, or a column of numbers under each name (Keras' ``history.history``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.jsonl import Rows
from forensics.parsers.sink import Sink
from forensics.parsers.table import Column, claim_confidence, column_of, emit

NAME = "json_history"

MAX_BYTES = 1 << 29
"""A larger document is not read whole; JSON lines have no such limit."""
MAX_COLUMNS = 20_000
BOM = b"\xef\xbb\xbf"

_COLUMN = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:\s*\[\s*(?=[-\d\]NI])')
"""A name with a list of numbers behind it."""


def sniff(source: Source) -> Claim | None:
    """Claim a list whose first entry is a row with known names, or an object of number lists with known names."""
    if source.is_dir:
        return None
    text = source.head.removeprefix(BOM).lstrip()
    if text[:1] == b"[":
        names = _first_row(text)
    elif text[:1] == b"{" and source.path.suffix.lower() == ".json":
        names = tuple(_COLUMN.findall(text.decode("utf-8", "replace")))
        inside = text[1:].lstrip()
        if not names or not _COLUMN.match(inside.decode("utf-8", "replace")):
            return None
    else:
        return None
    confidence = claim_confidence(names, named=False) if names else 0
    return Claim(NAME, confidence) if confidence >= 40 else None


def head_columns(source: Source) -> tuple[str, ...]:
    """The column names, for deciding which tables of a folder belong together."""
    text = source.head.removeprefix(BOM).lstrip()
    return _first_row(text) if text[:1] == b"[" else tuple(_COLUMN.findall(text.decode("utf-8", "replace")))


def _first_row(text: bytes) -> tuple[str, ...]:
    inside = text[1:].decode("utf-8", "replace").lstrip()
    if not inside.startswith("{"):
        return ()
    try:
        row, _ = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return ()
    found = Rows()
    found.add(row, 1)
    return tuple(found.rows)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a document holds one run
    """Read the document. Of one that is broken, the rows before the break are kept."""
    if source.size > MAX_BYTES:
        sink.damage(f"a JSON document of {source.size:,} bytes is larger than what is read", "the whole file")
        return
    data = source.path.read_bytes()
    sink.progress(len(data))
    text = data.removeprefix(BOM).decode("utf-8", "replace")
    if "\ufffd" in text:
        sink.damage("the document holds bytes that are not text", "what these bytes stand in")
    if text.lstrip().startswith("["):
        _rows(text, sink)
    else:
        _columns(text, sink)


def _rows(text: str, sink: Sink) -> None:
    found = Rows()
    other = 0
    decoder = json.JSONDecoder()
    position = text.index("[") + 1
    number = 0
    while True:
        while position < len(text) and (text[position].isspace() or text[position] == ","):
            position += 1
        if position >= len(text):
            sink.damage(f"the list is cut after {number} entries", "the entries after that")
            break
        if text[position] == "]":
            if text[position + 1 :].strip("\x00\r\n\t "):
                sink.damage("more stands after the list", "what stands there")
            break
        try:
            entry, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as problem:
            sink.damage(f"entry {number + 1} is broken ({str(problem)[:120]})", "it and the entries after it")
            break
        number += 1
        if isinstance(entry, dict):
            found.add(entry, number)
        else:
            other += 1
    if other:
        sink.damage(f"{other} entries are no objects", f"{other} rows")
    emit(found.columns(), np.array(found.lines, dtype=np.int64), sink)


def _columns(text: str, sink: Sink) -> None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        sink.damage(f"the document is broken ({str(problem)[:120]})", "the whole file")
        return
    if not isinstance(document, Mapping):
        sink.damage("the document is no object", "the whole file")
        return
    lists = {str(k): v for k, v in document.items() if isinstance(v, list)}
    by_length: dict[int, dict[str, Column]] = {}
    for name, values in list(lists.items())[:MAX_COLUMNS]:
        rows = [i for i, v in enumerate(values) if isinstance(v, (bool, int, float, str))]
        if len(rows) < len(values):
            sink.damage(f"{len(values) - len(rows)} entries of {name[:80]!r} are no numbers", f"{len(values) - len(rows)} points")
        by_length.setdefault(len(values), {})[name] = column_of(rows, [values[i] for i in rows], len(values))
    for length, columns in sorted(by_length.items(), reverse=True):  # lists of another length have steps of their own
        emit(columns, np.arange(1, length + 1, dtype=np.int64), sink)
