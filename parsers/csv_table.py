"""CSV and TSV metric files: Lightning and Keras CSVLogger, YOLO results.csv, exports, hand-written ones.

Clean files go straight through polars. A file with ragged lines, foreign bytes, odd line ends or quotes is read line by
line, so that one bad line costs one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from forensics.model import IntArray
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.parsers.table import Column, claim_confidence, emit
from forensics.vocabulary import classify, step_column

if TYPE_CHECKING:
    import polars as pl

NAME = "csv"

SUFFIXES = frozenset({".csv", ".tsv"})
CHUNK = 1 << 18
"""Bytes looked at together: they stay in the cache."""
MAX_COLUMNS = 20_000
"""More columns than this is not a table of metrics."""
INFER_ROWS = 2_000
"""Rows polars looks at before it decides a column's type; a wrong guess costs a second pass, not a point."""
MULTILINE_ROWS = 1_000
"""Lines one quoted cell may span before its opening quote is taken for a stray character."""

EXPORT_MARK = " - "
EXPORT_SPREAD = ("__MIN", "__MAX")

_DECIMAL_COMMA = r"^\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*$"

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Header:
    separator: str
    names: tuple[str, ...]
    line: int
    """1-based."""


@dataclass(frozen=True, slots=True)
class _Survey:
    lines: int
    quotes: bool
    odd: bool
    """NUL bytes or line ends other than LF and CRLF."""
    ends: bool
    """The last line has its end: its last cell is whole."""


def sniff(source: Source) -> Claim | None:
    """Claim a table whose header names a step or a known metric; any other .csv with numbers gets a weak claim."""
    if source.is_dir or not source.head:
        return None
    named = source.path.suffix.lower() in SUFFIXES
    header = _header(source)
    if header is None:
        return None
    if not named and (step_column(header.names) is None or len(header.names) < 2):
        return None
    return Claim(NAME, claim_confidence(header.names, named=named), tuple(RunKey(r, r) for r in _exported_runs(header.names)) or (RunKey(),))


def head_columns(source: Source) -> tuple[str, ...]:
    """The column names, for deciding which tables of a folder belong together."""
    header = _header(source)
    return header.names if header else ()


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read the table; of an export of several runs, the columns of one."""
    header = _header(source)
    if header is None:
        sink.damage("no header line of a table", "the whole file")
        return
    if any("\ufffd" in name for name in header.names):
        sink.damage("the header holds bytes that are not text", "the names these bytes stand in")
    survey = _survey(source, sink)
    if not survey.ends:
        sink.note("last_line_without_end", survey.lines)
    if not _read_clean(source, header, survey, sink, run.id):
        _read_tolerant(source, header, sink, run.id)


def _header(source: Source) -> _Header | None:
    text = _decode(source.head)
    if text is None:
        return None
    lines = re.split(r"\r\n|\n|\r", text)
    for number, line in enumerate(lines[:50], start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        separator = max(",\t;", key=re.sub(r'"[^"]*"', "", line).count)
        names = tuple(_unquote(cell) for cell in _split(line, separator))
        data = next((x for x in lines[number : number + 20] if x.strip()), "")
        if len(names) > MAX_COLUMNS or any(_NUMBER.fullmatch(n) for n in names) or not any(names):
            return None
        if len(names) == 1 and step_column(names) is None and classify(names[0])[0] is None:
            return None
        if data and not any(_NUMBER.fullmatch(_unquote(cell)) for cell in _split(data, separator)):
            return None
        return _Header(separator, names, number)
    return None


def _decode(head: bytes) -> str | None:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if head.startswith(mark):
            return head.decode(encoding, errors="replace")
    if b"\x00" in re.split(rb"[\r\n]", head, maxsplit=1)[0] or head[:1] in (b"{", b"[", b"<"):
        return None
    return head.decode("utf-8", errors="replace")


def _survey(source: Source, sink: Sink) -> _Survey:
    """Count what decides between the fast and the tolerant way."""
    lines = lone = 0
    quotes = odd = False
    last = b""
    with source.path.open("rb") as file:
        while chunk := file.read(CHUNK):
            codes = np.frombuffer(chunk, dtype=np.uint8)
            ends = codes == ord("\n")
            lines += int(np.count_nonzero(ends))
            quotes = quotes or b'"' in chunk
            odd = odd or b"\x00" in chunk
            if b"\r" in chunk or last == b"\r":
                returns = codes == ord("\r")
                lone += int(np.count_nonzero(returns)) - int(np.count_nonzero(returns[:-1] & ends[1:])) - (last == b"\r" and chunk[:1] == b"\n")
            last = chunk[-1:]
            sink.progress(len(chunk))
    return _Survey(lines + (last != b"\n"), quotes, odd or lone > 0, last == b"\n")


def _separators(source: Source, separator: str) -> int:
    with source.path.open("rb") as file:
        return sum(int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == ord(separator))) for chunk in iter(lambda: file.read(CHUNK), b""))


def _read_clean(source: Source, header: _Header, survey: _Survey, sink: Sink, run: str) -> bool:
    rows = survey.lines - header.line
    if header.line != 1 or survey.odd or source.head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return False
    import polars as pl  # noqa: PLC0415 - costs 0.14 s of import, paid only where there is a table

    for infer in (True, False):
        try:
            frame = pl.read_csv(
                source.path,
                separator=header.separator,
                quote_char='"' if survey.quotes else None,
                infer_schema=infer,
                infer_schema_length=INFER_ROWS,
                has_header=True,
            )
        except pl.exceptions.PolarsError:
            continue
        if frame.height != rows or frame.width != len(header.names):
            return False
        if frame[:, -1].null_count() and (survey.quotes or _separators(source, header.separator) != (frame.width - 1) * (rows + 1)):
            return False  # there may be a short line
        lines = np.arange(2, rows + 2, dtype=np.int64)
        again = frame[:, 0] == header.names[0] if frame.dtypes[0] == pl.String else pl.Series([False])
        if again.any():
            sink.note("header_repeated", int(again.sum()))
            frame, lines = frame.filter(~again), lines[~again.to_numpy()]
        _emit([_column(frame[:, i]) for i in range(frame.width)], header, lines, sink, run)
        return True
    return False


def _column(series: pl.Series) -> Column:
    import polars as pl  # noqa: PLC0415

    rows = None
    if series.null_count():
        rows = series.is_not_null().arg_true().to_numpy().astype(np.int64)
        series = series.drop_nulls()
    if series.dtype == pl.String:
        return Column(rows, None, series)  # type: ignore[arg-type]
    if series.dtype.is_integer() or series.dtype == pl.Boolean:
        return Column(rows, series.cast(pl.Int64, strict=False).to_numpy())
    return Column(rows, series.cast(pl.Float64).to_numpy())


def _read_tolerant(source: Source, header: _Header, sink: Sink, run: str) -> None:
    width = len(header.names)
    cells: list[list[str | None]] = [[] for _ in range(width)]
    lines: list[int] = []
    ragged: list[int] = []
    foreign = 0
    repeated = 0
    for number, line, ended in _lines(source):
        if number <= header.line or not line.strip() or line.lstrip().startswith("#"):
            continue
        foreign += "\ufffd" in line or "\x00" in line
        parts = [_unquote(p) for p in _split(line.replace("\x00", ""), header.separator)]
        if tuple(parts) == header.names:
            repeated += 1
            continue
        if len(parts) != width:
            ragged.append(number)
            if not ended and len(parts) < width:
                parts.pop()  # the file ends inside this cell: 0.0123 may have become 0.0
        lines.append(number)
        for i in range(width):
            cells[i].append(parts[i] if i < len(parts) else None)
    if ragged:
        what = f"{len(ragged)} lines have another number of cells than the header (first: line {ragged[0]})"
        sink.damage(what, "the missing or surplus cells of these lines")
    if foreign:
        sink.damage(f"{foreign} lines hold bytes that are not text", "the cells these bytes stand in")
    if repeated:
        sink.note("header_repeated", repeated)
    _emit([_texts(column) for column in cells], header, np.array(lines, dtype=np.int64), sink, run)


def _emit(columns: list[Column], header: _Header, lines: IntArray, sink: Sink, run: str) -> None:
    """Write the columns. Exports of the W&B page carry the run's name in every column, and the spread of each point."""
    names = [n for n in header.names if not (n.endswith(EXPORT_SPREAD) and n.rsplit("__", 1)[0] in header.names)]
    if run:
        names = [n for n in names if step_column([n]) is not None or n.startswith(f"{run}{EXPORT_MARK}")]
    runs = {n.split(EXPORT_MARK)[0] for n in names if step_column([n]) is None}
    export = len(runs) == 1 and all(EXPORT_MARK in n for n in names if step_column([n]) is None)
    if export:
        sink.note("run_name", runs.pop())
    kept: dict[str, Column] = {}
    for name, column in zip(header.names, columns, strict=True):
        if name in names:
            plain = _unused(name.split(EXPORT_MARK, 1)[-1] if export else name, kept)
            kept[plain] = _with_points(column) if header.separator != "," else column
    emit(kept, lines, sink)


def _unused(name: str, kept: Mapping[str, Column]) -> str:
    """The name, or ``name.1`` and so on where earlier columns have it, as pandas calls them."""
    names = chain([name], (f"{name}.{n}" for n in range(1, len(kept) + 1)))
    return next(n for n in names if n not in kept)


def _exported_runs(names: Sequence[str]) -> tuple[str, ...]:
    """The runs of an export of the W&B page, where there are several: every curve has its spread beside it."""
    curves = [n for n in names if step_column([n]) is None and not n.endswith(EXPORT_SPREAD)]
    if not all(EXPORT_MARK in n and f"{n}{EXPORT_SPREAD[0]}" in names for n in curves):
        return ()
    runs = tuple(dict.fromkeys(n.split(EXPORT_MARK)[0] for n in curves))
    return runs if len(runs) > 1 else ()


def _with_points(column: Column) -> Column:
    """Numbers written with a decimal comma, as spreadsheets of many countries write them, with a point instead."""
    if column.texts is None or not len(column):
        return column
    import polars as pl  # noqa: PLC0415

    cells = pl.Series(values=column.texts, dtype=pl.String)
    commas = cells.str.contains(_DECIMAL_COMMA)
    if not commas.any() or (cells.is_not_null() & ~commas & cells.str.contains(",", literal=True)).any():
        return column
    return Column(column.rows, None, cells.str.replace(",", ".", literal=True).to_list())


def _texts(cells: list[str | None]) -> Column:
    present = [i for i, cell in enumerate(cells) if cell is not None and cell.strip()]
    rows: IntArray | None = None if len(present) == len(cells) else np.array(present, dtype=np.int64)
    return Column(rows, None, [cells[i] for i in present])


def _lines(source: Source) -> Iterator[tuple[int, str, bool]]:
    """Line number, text and whether the line had its end. A quoted cell that spans lines is joined."""
    data = source.path.read_bytes()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    pieces = re.split(r"\r\n|\n|\r", data.decode(encoding, errors="replace"))
    ended = pieces[-1] == ""
    if ended:
        pieces.pop()
    i = 0
    while i < len(pieces):
        line, start = pieces[i], i
        if line.count('"') % 2:
            stop = next((j for j in range(i + 1, min(i + MULTILINE_ROWS, len(pieces))) if pieces[j].count('"') % 2), None)
            if stop is not None:
                line, i = "\n".join(pieces[i : stop + 1]), stop
        i += 1
        yield start + 1, line, ended or i < len(pieces)


def _split(line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    parts: list[str] = []
    held = ""
    for piece in line.split(separator):
        held = f"{held}{separator}{piece}" if held else piece
        if held.count('"') % 2 == 0:
            parts.append(held)
            held = ""
    if held:
        parts.extend(held.split(separator))
    return parts


def _unquote(cell: str) -> str:
    cell = cell.strip()
    if len(cell) >= 2 and cell[0] == cell[-1] == '"':
        return cell[1:-1].replace('""', '"').strip()
    return cell


