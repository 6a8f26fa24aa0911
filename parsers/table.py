"""Rows with named columns, as CSV and JSON lines give them, turned into signals with a step axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import numpy as np

from forensics.model import BoolArray, FloatArray, IntArray, NumArray
from forensics.parsers.sink import Sink
from forensics.vocabulary import Role, classify, normalise, step_column

if TYPE_CHECKING:
    import polars as pl

EPOCH_SECONDS = (5e8, 5e9)
"""A time column inside this range is seconds since 1970 (1985 to 2128); a thousand times that is milliseconds."""

ROWS_PER_EPOCH = 1.5
"""More points of one column per epoch than this: the epoch number is no step axis. One train and one eval row stay below."""

INT64_MAX = float(2**63 - 1)

_PLACEHOLDERS = frozenset({"", "-", "--", "na", "n/a", "none", "null", "#n/a", "<na>"})
"""Texts that stand for "nothing here". ``nan`` is not among them: a NaN that was written is a point."""

_PERCENT = r"^[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*%$"
_THOUSANDS = r"^[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$"
_SURELY_THOUSANDS = r"^[-+]?[0-9]{1,3}((,[0-9]{3}){2,}|(,[0-9]{3})+\.[0-9]*)$"

_AXES = frozenset({None, Role.STEP, Role.EPOCH, Role.WALL_TIME})
_TRAINING = frozenset({Role.LOSS, Role.VAL_LOSS, Role.LR, Role.GRAD_NORM, Role.LOSS_SCALE})

Cells = Sequence[str | None]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column. ``rows`` int64 (points,) are the 0-based rows that have a value, None where every row has one.

    Exactly one of ``values`` (points,) and ``texts`` (points,) is set.
    """

    rows: IntArray | None
    values: NumArray | None = None
    texts: Cells | None = None

    def __len__(self) -> int:
        return len(self.values) if self.values is not None else 0 if self.texts is None else len(self.texts)


@dataclass(frozen=True, slots=True, eq=False)
class _RowFacts:
    """What holds for a whole row; all (rows,). ``known`` says which rows have a step, None where all do."""

    steps: IntArray
    known: BoolArray | None
    times: FloatArray | None
    lines: IntArray


def emit(columns: Mapping[str, Column], lines: IntArray, sink: Sink) -> None:
    """Write every numeric column to the sink. ``lines`` int64 (rows,) holds the 1-based line number of each row.

    Without a usable step column the 0-based row number is the step, and the note ``step_axis`` says so.
    """
    total = len(lines)
    numeric: dict[str, Column] = {}
    texts: dict[str, Column] = {}
    for name, column in columns.items():
        plain = name.strip()
        read = column if column.values is not None else _numbers(plain, column, lines, sink)
        if read is not None:
            numeric.setdefault(plain, read)
        else:
            texts.setdefault(plain, column)
    times = _wall_times(numeric, texts, total)
    axis = step_column(numeric)
    steps, known = _steps(axis, numeric, total)
    if steps is None:
        steps, known, axis = np.arange(total, dtype=np.int64), None, None
        if numeric:
            sink.note("step_axis", "row number")
    elif known is not None and not known.all():
        sink.note("rows_without_step", int(total - known.sum()))
    facts = _RowFacts(steps, known, times, lines)
    for name, column in numeric.items():
        if name != axis:
            _write(name, column, facts, sink)


def claim_confidence(names: Iterable[str], *, named: bool) -> int:
    """How sure a table with these columns is a log: a step axis, a known metric, the suffix of its format.

    Without a step axis only a metric of training itself makes it one: a data set may well hold a column ``length``.
    """
    names = tuple(names)
    roles = {classify(name)[0] for name in names}
    if step_column(names) is None:
        return 45 if roles & _TRAINING else 25 if named else 15
    return 40 + (20 if roles - _AXES else 0) + (20 if named else 0)


def join(parts: Sequence[tuple[int, int, Column]], total: int) -> Column:
    """One column out of those of consecutive blocks, each given as (first row, rows, column)."""
    if len(parts) == 1 and parts[0][:2] == (0, total):
        return parts[0][2]
    full = sum(len(c) for _, _, c in parts) == total
    rows = None if full else np.concatenate([start + (np.arange(size, dtype=np.int64) if c.rows is None else c.rows) for start, size, c in parts])
    if all(c.values is not None for _, _, c in parts):
        arrays = [c.values for _, _, c in parts if c.values is not None]
        return Column(rows, cast("NumArray", np.concatenate(arrays)))  # int64 only where all blocks are
    texts: list[str | None] = []
    for _, _, column in parts:
        texts.extend(map(repr, column.values.tolist()) if column.values is not None else [] if column.texts is None else column.texts)
    return Column(rows, None, texts)


def column_of(rows: Iterable[int], values: list[object], total: int) -> Column:
    """A column from mixed Python values: numbers and booleans as they are, anything else as text."""
    index = np.fromiter(rows, dtype=np.int64)
    place = None if len(index) == total else index
    kinds = set(map(type, values))
    if kinds <= {int, bool}:
        with suppress(OverflowError):
            return Column(place, np.array(values, dtype=np.int64))
    if kinds <= {int, bool, float}:
        try:
            return Column(place, np.array(values, dtype=np.float64))
        except OverflowError:  # an integer beyond all floats
            return Column(place, np.array([_float(v) for v in values], dtype=np.float64))
    return Column(place, None, [v if isinstance(v, str) else repr(v) for v in values])


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")  # type: ignore[operator]


def _numbers(name: str, column: Column, lines: IntArray, sink: Sink) -> Column | None:
    """A text column read as numbers, or None where it is text. A few bad cells among numbers are damage."""
    import polars as pl  # noqa: PLC0415 - costs 0.14 s of import, paid only by files that hold text columns

    cells = _plain(name, pl.Series(values=column.texts, dtype=pl.String).str.strip_chars())
    floats = cells.cast(pl.Float64, strict=False)
    missing = floats.is_null()
    bad = missing & cells.is_not_null()
    if bad.any():
        bad &= ~cells.str.to_lowercase().is_in(list(_PLACEHOLDERS))
    read, wrong = len(floats) - int(missing.sum()), int(bad.sum())
    if read == 0 or wrong > read:
        if wrong and classify(name)[0] in _TRAINING:
            sink.damage(f"column {name[:80]!r} holds {wrong} texts and {read} numbers", f"{wrong + read} points of {name[:80]!r}")
        return None
    rows = np.arange(len(cells), dtype=np.int64) if column.rows is None else column.rows
    if wrong:
        first = int(lines[rows[int(bad.arg_true()[0])]])
        sink.damage(f"{wrong} cells of column {name[:80]!r} are not numbers (first in line {first})", f"{wrong} points of {name[:80]!r}")
    keep = ~missing
    ints = cells.cast(pl.Int64, strict=False)
    exact = int((ints.is_null() & keep).sum()) == 0
    values = (ints if exact else floats).filter(keep).to_numpy()
    return Column(rows if not missing.any() and column.rows is not None else _only(rows, keep.to_numpy(), column.rows), values)


def _plain(name: str, cells: pl.Series) -> pl.Series:
    """Cells without percent signs and without commas between thousands, where all that have them are written so.

    ``2,125`` may be a decimal comma: only steps, which are whole, are read as thousands by one comma alone.
    """
    percent = cells.str.contains(_PERCENT)
    if percent.any() and bool((percent | cells.is_null() | cells.str.to_lowercase().is_in(list(_PLACEHOLDERS))).all()):
        return cells.str.strip_chars_end("% ")
    grouped = cells.str.contains(_THOUSANDS)
    commas = cells.str.contains(",", literal=True)
    if grouped.any() and not bool((commas & ~grouped).any()) and (step_column([name]) is not None or cells.str.contains(_SURELY_THOUSANDS).any()):
        return cells.str.replace_all(",", "", literal=True)
    return cells


def _only(rows: IntArray, keep: BoolArray, given: IntArray | None) -> IntArray | None:
    return given if keep.all() else rows[keep]


def _steps(axis: str | None, numeric: Mapping[str, Column], total: int) -> tuple[IntArray | None, BoolArray | None]:
    """Steps of every row and which rows have one (None = all), or (None, None) where the column cannot be an axis."""
    if axis is None:
        return None, None
    column = numeric[axis]
    raw = column.values
    assert raw is not None
    whole = np.ones(len(raw), dtype=bool)
    if raw.dtype != np.int64:
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(raw) & (np.abs(raw) < INT64_MAX) & (raw == np.floor(raw))
        if 2 * whole.sum() <= len(raw):
            return None, None
    rows = np.arange(total, dtype=np.int64) if column.rows is None else column.rows
    if normalise(axis) == "epoch" and _many_rows_per_epoch(axis, rows, raw, numeric):
        return None, None
    if column.rows is None and whole.all():
        return raw.astype(np.int64), None
    steps = np.zeros(total, dtype=np.int64)
    known = np.zeros(total, dtype=bool)
    steps[rows[whole]] = raw[whole].astype(np.int64)
    known[rows[whole]] = True
    return steps, known


def _many_rows_per_epoch(axis: str, rows: IntArray, epochs: NumArray, numeric: Mapping[str, Column]) -> bool:
    distinct = len(np.unique(epochs))
    most = max((len(rows) if c.rows is None else len(c.rows) for name, c in numeric.items() if name != axis), default=0)
    return most > ROWS_PER_EPOCH * max(distinct, 1) and most > distinct + 2


def _wall_times(numeric: Mapping[str, Column], texts: Mapping[str, Column], total: int) -> FloatArray | None:
    """Seconds since 1970 of every row (rows,), from the first column that reads as absolute time; NaN where a row has none."""
    for name, column in (*numeric.items(), *texts.items()):
        if classify(name)[0] is not Role.WALL_TIME and normalise(name) not in {"created_at", "logged_at", "ts"}:
            continue
        seconds = _absolute(column.values) if column.values is not None else None if column.texts is None else _iso(column.texts)
        if seconds is None:
            continue
        if column.rows is None:
            return seconds
        times = np.full(total, np.nan)
        times[column.rows] = seconds
        return times
    return None


def _absolute(values: NumArray) -> FloatArray | None:
    seconds = values.astype(np.float64)
    low, high = EPOCH_SECONDS
    for scale in (1.0, 1e3, 1e6, 1e9):
        scaled = seconds / scale
        if len(scaled) and bool(((scaled >= low) & (scaled <= high)).all()):
            return scaled
    return None


def _iso(cells: Cells) -> FloatArray | None:
    out = np.full(len(cells), np.nan)
    misses = 0
    for i, cell in enumerate(cells):
        try:
            moment = datetime.fromisoformat((cell or "").strip()[:64].replace(",", "."))
            out[i] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            misses += 1
            if misses > 16 and misses > i // 2:
                return None
    return out if 2 * misses < len(cells) else None


def _write(name: str, column: Column, rows: _RowFacts, sink: Sink) -> None:
    values, place = column.values, column.rows
    assert values is not None
    if rows.known is not None:
        place = np.arange(len(rows.lines), dtype=np.int64) if place is None else place
        keep = rows.known[place]
        place, values = place[keep], values[keep]
    if place is None:
        sink.points(name, rows.steps, values, wall_times=rows.times, records=rows.lines)
    else:
        times = None if rows.times is None else rows.times[place]
        sink.points(name, rows.steps[place], values, wall_times=times, records=rows.lines[place])
