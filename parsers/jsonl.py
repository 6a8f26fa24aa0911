"""JSON lines: one object per logged step, bare NaN and Infinity accepted, bad lines counted and skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.table import Column, column_of, emit
from forensics.vocabulary import classify, step_column

NAME = "jsonl"

SUFFIXES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
MAX_DEPTH = 6
"""Nesting of metric names; deeper objects are media records or an attack."""
MAX_COLUMNS = 20_000


@dataclass(slots=True)
class _Rows:
    rows: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, list[object]] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    def add(self, entry: Mapping[str, object], line: int) -> None:
        self._put(entry, len(self.lines), "", 0)
        self.lines.append(line)

    def _put(self, entry: Mapping[str, object], row: int, prefix: str, depth: int) -> None:
        for key, value in entry.items():
            name = f"{prefix}{key}"
            if isinstance(value, dict):
                if depth < MAX_DEPTH:
                    self._put(value, row, f"{name}/", depth + 1)
            elif value is None:
                self.nulls[name] = self.nulls.get(name, 0) + 1
            elif isinstance(value, (bool, int, float, str)):
                if name not in self.rows:
                    if len(self.rows) >= MAX_COLUMNS:
                        continue
                    self.rows[name], self.values[name] = [], []
                self.rows[name].append(row)
                self.values[name].append(value)

    def columns(self) -> dict[str, Column]:
        return {name: column_of(self.rows[name], self.values[name], len(self.lines)) for name in self.rows}


def sniff(source: Source) -> Claim | None:
    """Claim a file whose first lines are JSON objects, at least two of them unless the suffix says JSON lines."""
    if source.is_dir or source.head.lstrip()[:1] != b"{":
        return None
    named = source.path.suffix.lower() in SUFFIXES
    names = head_columns(source, 2 if not named else 1)
    if not names:
        return Claim(NAME, 15) if named else None
    has_step = step_column(names) is not None
    known = any(classify(name)[0] is not None for name in names)
    return Claim(NAME, (40 if has_step else 20) + (20 if known else 0) + (20 if named else 0) - (10 if not has_step and not known else 0))


def head_columns(source: Source, least: int = 1) -> tuple[str, ...]:
    """The names in the first lines, or () where fewer than ``least`` of them are JSON objects."""
    found = _Rows()
    for number, line in enumerate(source.head.split(b"\n")[:200], start=1):
        for entry in _objects(line):
            found.add(entry, number)
    return tuple(found.rows) if len(found.lines) >= least else ()


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a file holds one run
    """Read every line that is a JSON object."""
    found = _Rows()
    bad: list[int] = []
    with source.path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            sink.progress(len(line))
            if not line.strip():
                continue
            got = False
            for entry in _objects(line):
                found.add(entry, number)
                got = True
            if not got:
                bad.append(number)
    if bad:
        shown = ", ".join(map(str, bad[:5])) + (" ..." if len(bad) > 5 else "")
        sink.damage(f"{len(bad)} lines are not JSON objects (line {shown})", f"{len(bad)} rows")
    emit(found.columns(), np.array(found.lines, dtype=np.int64), sink)


def _objects(line: bytes) -> Iterator[dict[str, object]]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        yield value
