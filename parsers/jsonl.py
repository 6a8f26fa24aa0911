"""JSON lines: one object per logged step, bare NaN and Infinity accepted, bad lines counted and skipped.

The file is read in blocks of whole lines. A clean block goes through polars; every way in which polars could drop or
change something is counted afterwards, and a block that does not add up is read line by line instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from forensics.model import FloatArray, NumArray
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.table import Column, claim_confidence, column_of, emit, join

if TYPE_CHECKING:
    import polars as pl

NAME = "jsonl"

SUFFIXES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
BOM = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")
MAX_WIDE = 1 << 28
"""Bytes read of a UTF-16 file: it is held in memory whole."""
BLOCK = 1 << 23
"""Bytes per block: large enough for polars to be at full speed, small enough that memory is reused."""
SLICE = 1 << 18
MAX_LINE = 1 << 26
"""A longer line is not read: it is no row of metrics."""
MAX_DEPTH = 6
"""Nesting of metric names; deeper objects are media records or an attack."""
MAX_COLUMNS = 20_000
HEAD_ROWS = 1_000
"""Rows from which the columns of a block are guessed; what is counted afterwards decides whether the guess was right."""

_NON_FINITE = ((b"-Infinity", -np.inf), (b"Infinity", np.inf), (b"NaN", np.nan))
_STAND_INS = (b"-3.1415926535897931e-291", b"1.6180339887498949e-291", b"2.7182818284590451e-291")
"""Numbers that stand for the three words while polars reads a block, none a part of another; checked not to occur in it."""


@dataclass(slots=True)
class Rows:
    """Rows as Python values, column by column; keys of objects in a row are joined by a slash."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, list[object]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    def add(self, entry: Mapping[str, object], line: int) -> None:
        """One more row."""
        self._put(entry, len(self.lines), "", 0)
        self.lines.append(line)

    def _put(self, entry: Mapping[str, object], row: int, prefix: str, depth: int) -> None:
        for key, value in entry.items():
            name = f"{prefix}{key}"
            if isinstance(value, dict):
                if depth < MAX_DEPTH:
                    self._put(value, row, f"{name}/", depth + 1)
            elif isinstance(value, (bool, int, float, str)):
                place = self.rows.get(name)
                if place is None:
                    if len(self.rows) >= MAX_COLUMNS:
                        continue
                    place = self.rows[name] = []
                    self.values[name] = []
                if not place or place[-1] != row:
                    place.append(row)
                    self.values[name].append(value)

    def columns(self) -> dict[str, Column]:
        """The finished columns."""
        return {name: column_of(self.rows[name], self.values[name], len(self.lines)) for name in self.rows}


@dataclass(frozen=True, slots=True)
class _Objects:
    """What stands on a line, and whether that is all of it."""

    entries: list[dict[str, object]]
    whole: bool


@dataclass(slots=True)
class _Reading:
    """State over the blocks of one file."""

    parts: dict[str, list[tuple[int, int, Column]]] = field(default_factory=dict)
    lines: list[np.ndarray] = field(default_factory=list)
    rows: int = 0
    line: int = 0
    bad: list[int] = field(default_factory=list)
    partial: list[int] = field(default_factory=list)
    nulls: dict[str, int] = field(default_factory=dict)
    schema: dict[str, pl.DataType] = field(default_factory=dict)
    non_finite: bool = False

    def add(self, columns: Mapping[str, Column], lines: np.ndarray) -> None:
        for name, column in columns.items():
            if name in self.parts or len(self.parts) < MAX_COLUMNS:
                self.parts.setdefault(name, []).append((self.rows, len(lines), column))
        self.lines.append(lines)
        self.rows += len(lines)


def sniff(source: Source) -> Claim | None:
    """Claim a file whose first lines are JSON objects, at least two of them unless the suffix says JSON lines."""
    if source.is_dir:
        return None
    named = source.path.suffix.lower() in SUFFIXES
    head = _utf8(source.head)
    if head.removeprefix(BOM).lstrip()[:1] != b"{" and not (named and b"\n{" in head):
        return None
    names = head_columns(source, 1 if named else 2)
    if not names:
        return Claim(NAME, 15) if named else None
    return Claim(NAME, claim_confidence(names, named=named))


def head_columns(source: Source, least: int = 1) -> tuple[str, ...]:
    """The names in the first lines, or () where fewer than ``least`` of them are JSON objects."""
    found = Rows()
    for number, line in enumerate(_utf8(source.head).split(b"\n")[:200], start=1):
        for entry in _objects(line).entries:
            found.add(entry, number)
    return tuple(found.rows) if len(found.lines) >= least else ()


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a file holds one run
    """Read every line that is a JSON object. A null is no point; how many there were is noted as ``null_values``."""
    reading = _Reading()
    with _open(source, sink) as file:
        for block in _blocks(file):
            sink.progress(len(block))
            if not _read_fast(block, reading):
                _read_lines(block, reading)
    if reading.bad:
        sink.damage(f"{len(reading.bad)} lines are not JSON objects ({_listed(reading.bad)})", f"{len(reading.bad)} rows")
    if reading.partial:
        what = f"{len(reading.partial)} lines hold bytes that are not text, or more than their JSON objects ({_listed(reading.partial)})"
        sink.damage(what, "what else stood on these lines")
    if reading.nulls:
        sink.note("null_values", reading.nulls)
    columns = {name: join(parts, reading.rows) for name, parts in reading.parts.items()}
    emit(columns, np.concatenate(reading.lines) if reading.lines else np.empty(0, np.int64), sink)


def _utf8(data: bytes) -> bytes:
    """Text that says it is UTF-16, as PowerShell redirects it, in UTF-8."""
    return data.decode("utf-16", errors="replace").encode() if data.startswith(WIDE) else data


def _open(source: Source, sink: Sink) -> BinaryIO:
    if not source.head.startswith(WIDE):
        return source.path.open("rb")
    if source.size > MAX_WIDE:
        sink.damage(f"more than {MAX_WIDE:,} bytes of UTF-16", "everything after that; write the file as UTF-8 to read it whole")
    with source.path.open("rb") as file:
        return BytesIO(_utf8(file.read(MAX_WIDE)))


def _listed(lines: Sequence[int]) -> str:
    return "line " + ", ".join(map(str, lines[:5])) + (" ..." if len(lines) > 5 else "")


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole lines, each copied once; a line longer than MAX_LINE comes in pieces, which then are bad lines."""
    start = 0
    while True:
        file.seek(start + BLOCK - 1)
        file.readline(MAX_LINE)
        stop = file.tell()
        file.seek(start)
        block = file.read(stop - start)
        if not block:
            return
        yield block
        start += len(block)


def _read_fast(block: bytes, reading: _Reading) -> bool:
    """Read a block with polars. False where anything might have been lost or changed; then nothing was added."""
    lines = _count(block, "\n") + (not block.endswith(b"\n"))
    if not _strict():
        return False
    swapped = _swap(block) if reading.non_finite else (block, {})
    read = _frame(swapped[0], reading) if swapped else None
    if read is None and swapped and not reading.non_finite and (b"NaN" in block or b"Infinity" in block):
        reading.non_finite = True
        swapped = _swap(block)
        read = _frame(swapped[0], reading) if swapped else None
    if read is None or swapped is None or read[0].height != lines:
        return False
    frame, nulls = read
    if all(series.null_count() for series in frame) and block.count(b"{") != lines:
        return False  # a row without any value may be a line that is no object
    columns: dict[str, Column] = {}
    for name in frame.columns:
        series = frame[name]
        if not (series.dtype.is_numeric() or series.dtype in _plain_types()):
            return False
        if series.dtype == _plain_types()[0] and series.str.contains(r"^[\[{]").any():
            return False  # a list or an object among texts was turned into text
        if series.null_count() < len(series):
            columns[name] = _column(series, swapped[1])
        missing = f'"{name}":'.encode()
        if nulls and series.null_count() and (found := block.count(missing + b" null") + block.count(missing + b"null")):
            reading.nulls[name] = reading.nulls.get(name, 0) + found
    reading.add(columns, np.arange(reading.line + 1, reading.line + lines + 1, dtype=np.int64))
    reading.line += lines
    return True


def _frame(block: bytes, reading: _Reading) -> tuple[pl.DataFrame, int] | None:
    """The block as a table in which every key of the block is a column, and how many nulls it spells out; or None."""
    import polars as pl  # noqa: PLC0415 - costs 0.14 s of import, paid only where there is a table

    try:
        if not reading.schema:
            reading.schema = dict(pl.read_ndjson(block[: block.find(b"\n", 1 << 18) + 1] or block, infer_schema_length=HEAD_ROWS).schema)
        if any(kind.is_nested() for kind in reading.schema.values()):
            return None  # objects and lists in the rows: their keys are taken apart line by line
        frame = pl.read_ndjson(block, schema=reading.schema)
        if (nulls := _nulls(frame, block)) is not None:
            return frame, nulls
    except pl.exceptions.PolarsError:
        pass
    try:
        frame = pl.read_ndjson(block, infer_schema_length=None)
    except pl.exceptions.PolarsError:
        return None
    nulls = _nulls(frame, block)
    if nulls is None or frame.width > MAX_COLUMNS:
        return None
    reading.schema.update(frame.schema)
    return frame, nulls


def _nulls(frame: pl.DataFrame, block: bytes) -> int | None:
    """How many nulls the text spells out; None where the table has not a cell for every key: some was left out or merged."""
    cells = sum(len(series) - series.null_count() for series in frame)
    if cells == _count(block, ":"):
        return 0
    keys = block.count(b'":')  # a text may hold colons, a key ends with this
    if cells == keys:
        return 0
    nulls = block.count(b": null") + block.count(b":null")
    return nulls if cells == keys - nulls else None


def _count(block: bytes, letter: str) -> int:
    """How often a frequent letter occurs; in slices that stay in the cache. bytes.count is slow where hits are many."""
    codes = np.frombuffer(block, dtype=np.uint8)
    return sum(int(np.count_nonzero(codes[start : start + SLICE] == ord(letter))) for start in range(0, len(codes), SLICE))


def _swap(block: bytes) -> tuple[bytes, dict[float, float]] | None:
    """The block with stand-ins for NaN and the infinities, and what each stands for; None where that is not safe."""
    meaning: dict[float, float] = {}
    if b"N" not in block and b"I" not in block:  # one letter is found ten times faster than a word
        return block, meaning
    for (word, value), stand_in in zip(_NON_FINITE, _STAND_INS, strict=True):
        if word not in block:
            continue
        if stand_in in block:
            return None
        meaning[float(stand_in)] = value
        block = block.replace(b": " + word, b": " + stand_in).replace(b":" + word, b":" + stand_in)
        if word in block.replace(b"-Infinity", b""):
            return None  # the word also stands elsewhere, in a text or a list
    return block, meaning


def _column(series: pl.Series, meaning: Mapping[float, float]) -> Column:
    import polars as pl  # noqa: PLC0415

    rows = None
    if series.null_count():
        rows = series.is_not_null().arg_true().to_numpy().astype(np.int64)
        series = series.drop_nulls()
    if series.dtype == pl.String:
        return Column(rows, None, series.to_list())
    if series.dtype in {pl.Int64, pl.Boolean}:
        return Column(rows, series.cast(pl.Int64).to_numpy())
    return Column(rows, _restore(series.cast(pl.Float64).to_numpy(), meaning))


def _restore(values: FloatArray, meaning: Mapping[float, float]) -> NumArray:
    if meaning:
        values = values.copy()
    for stand_in, value in meaning.items():
        values[values == stand_in] = value
    return values


@lru_cache(maxsize=1)
def _plain_types() -> Sequence[pl.DataType]:
    import polars as pl  # noqa: PLC0415

    return (pl.String(), pl.Boolean(), pl.Null())


@lru_cache(maxsize=1)
def _strict() -> bool:
    """Whether this polars refuses what does not fit the schema, instead of rounding it or dropping it."""
    import polars as pl  # noqa: PLC0415

    for text in (b'{"a":2.5}', b'{"a":"x"}', b'{"a":true}'):
        try:
            pl.read_ndjson(text, schema={"a": pl.Int64})
        except pl.exceptions.PolarsError:
            continue
        return False
    return True


def _read_lines(block: bytes, reading: _Reading) -> None:
    found = Rows()
    for line in block.split(b"\n") if not block.endswith(b"\n") else block[:-1].split(b"\n"):
        reading.line += 1
        if not line.strip():
            continue
        objects = _objects(line)
        for entry in objects.entries:
            found.add(entry, reading.line)
            for name, value in entry.items():
                if value is None and (name in reading.nulls or len(reading.nulls) < MAX_COLUMNS):
                    reading.nulls[name] = reading.nulls.get(name, 0) + 1
        if not objects.entries:
            reading.bad.append(reading.line)
        elif not objects.whole:
            reading.partial.append(reading.line)
    reading.add(found.columns(), np.array(found.lines, dtype=np.int64))


def _objects(line: bytes) -> _Objects:
    """The objects of a line: one, or several where two writers met on it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _run_together(line)
    return _Objects([value], whole=True) if isinstance(value, dict) else _Objects([], whole=False)


def _run_together(line: bytes) -> _Objects:
    text = line.decode("utf-8", errors="replace").strip("\x00\r\n\t ")
    decoder = json.JSONDecoder()
    position = 0
    found: list[dict[str, object]] = []
    while position < len(text) and text[position] == "{":
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        found.append(value)
        while position < len(text) and text[position].isspace():
            position += 1
    return _Objects(found, whole=position == len(text) and "\ufffd" not in text and b"\x00" not in line)
