"""MLflow's sqlite store, read directly and read-only: every metric row in the order it was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "mlflow_sqlite"

MAGIC = b"SQLite format 3\x00"
INFINITE = 1.7976931348623157e308
"""The store writes infinities as the largest finite numbers."""
FETCH = 8_192
"""Rows per fetch: enough to amortise the call, few enough that their objects stay in the cache."""
FAULTS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What a damaged file raises; the second where the name of a table or column in a message is no text, the third by its sizes."""
MAX_CELL = 1 << 24
"""Bytes of the longest text that is taken out of a table; names have 250, parameters 8,000."""
MAX_RUNS = 10_000
SALVAGE_STEP = 512
"""Rows tried at once behind a damaged place; a failing stretch is halved down to one row."""
ROWS_PER_PAGE = 128
"""Most rows that are looked for per page of a file whose end is lost: a row takes some 80 bytes, a page 4096."""
SALVAGE_DEAD = 512
"""Row numbers in a row that cannot be read, after which a file whose last row is unknown is taken to have ended."""
SALVAGE_TRIES = 20_000
"""Bound on the queries spent on one damaged table."""

Row: TypeAlias = tuple[bytes, int, int, float | None, int]
"""key, step, timestamp in ms, value (None = NaN), rowid."""

_NEEDED = {"metrics": {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}, "runs": {"run_uuid", "status", "start_time"}}
STAND_IN = 5.06020171345e-310
"""Stands for NaN, which SQL cannot give as a number, in rows that are read as a table."""
_SELECT = "SELECT key, step, timestamp, CASE is_nan WHEN 0 THEN value END, rowid FROM metrics NOT INDEXED"
_SELECT_KEY = (
    f"SELECT step, timestamp, CASE is_nan WHEN 0 THEN value ELSE {STAND_IN!r} END, rowid FROM metrics"  # noqa: S608 - constants
    " WHERE run_uuid = ? AND key = CAST(? AS TEXT)"
)
"""Without the name in every row, which costs a fifth of the time; it is bound as its bytes, which need be no sound text."""
_ROW = np.dtype([("step", "i8"), ("time", "i8"), ("value", "f8"), ("id", "i8")])
_NAMES = ("SELECT key FROM latest_metrics WHERE run_uuid = ?", "SELECT DISTINCT key FROM metrics WHERE run_uuid = ?")
"""The names of a run: from a table of few rows, or from all of them where that one does not know all."""
_HEADER = ((16, 2), (24, 4), (28, 4), (92, 4))
"""Offset and size of the page size, the change counter, the page count and the change it is valid for."""


def sniff(source: Source) -> Claim | None:
    """Claim a sqlite file that has MLflow's tables; a damaged one only where its name or head says MLflow."""
    if source.is_dir or not source.head.startswith(MAGIC):
        return None
    try:
        with closing(_open(source)) as database:
            if not _is_mlflow(database):
                return None
            rows = database.execute(
                "SELECT run_uuid, name, start_time FROM runs WHERE lifecycle_stage IS NOT 'deleted' ORDER BY start_time, rowid LIMIT ?", (MAX_RUNS,)
            ).fetchall()
    except FAULTS:
        suspect = b"is_nan" in source.head or "mlflow" in source.path.name.lower()
        return Claim(NAME, 80) if suspect else None
    return Claim(NAME, 90, tuple(RunKey(str(uuid), str(name or ""), _seconds(start) or 0.0) for uuid, name, start in rows))


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read one run. Raises OSError where the file cannot be opened."""
    sink.progress(source.size)
    if (missing := _missing_pages(source)) > 0:
        sink.damage(f"the file is {missing} pages shorter than its header says", f"what stood on {missing} pages: rows, or nothing")
    try:
        with closing(_open(source)) as database:
            run_id = run.id or _only_run(database)
            try:
                _facts(database, sink, run_id)
            except FAULTS as problem:
                sink.damage(f"the tables of runs and parameters are damaged ({problem})", "status and settings of the run")
            _metrics(database, sink, run_id)
    except FAULTS as problem:
        sink.damage(f"the database is damaged ({problem})", "everything in it")


def plain(text: object) -> object:
    """A parameter as the number or boolean it was before MLflow made it text."""
    if not isinstance(text, str):
        return text
    if text in {"True", "False", "true", "false"}:
        return text.lower() == "true"
    if text in {"None", "null"}:
        return None
    if len(text) < 64 and "_" not in text:
        for kind in (int, float):
            with suppress(ValueError):
                return kind(text)
    return text


def _open(source: Source) -> sqlite3.Connection:
    """Read-only; ``immutable`` where the folder does not allow the locks of a live database."""
    address = source.path.absolute().as_uri()
    for options in ("mode=ro", "mode=ro&immutable=1"):
        database = sqlite3.connect(f"{address}?{options}", uri=True)
        try:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
            database.execute("PRAGMA trusted_schema = OFF")
            if _missing_pages(source) > 0:
                database.execute("PRAGMA writable_schema = ON")  # without it sqlite opens no file that was cut; nothing is written
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            database.close()
            continue
        except FAULTS:
            database.close()
            raise
        database.text_factory = _text
        return database
    raise sqlite3.OperationalError("cannot be opened read-only")


def _missing_pages(source: Source) -> int:
    """Pages that the header counts and the file has not; a header that an old version wrote does not count them."""
    page, changes, pages, valid_for = (int.from_bytes(source.head[at : at + size], "big") for at, size in _HEADER)
    if changes != valid_for or not page:
        return 0
    return pages - source.size // (65_536 if page == 1 else page)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _is_mlflow(database: sqlite3.Connection) -> bool:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")}
    return all(
        table in tables and needed <= {row[1] for row in database.execute(f"PRAGMA table_info({table})")}  # table is a constant of this module
        for table, needed in _NEEDED.items()
    )


def _only_run(database: sqlite3.Connection) -> str:
    """The run of a store whose table of runs could not be read."""
    row = database.execute("SELECT run_uuid FROM metrics LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def _facts(database: sqlite3.Connection, sink: Sink, run_id: str) -> None:
    row = database.execute("SELECT name, status, start_time, end_time FROM runs WHERE run_uuid = ?", (run_id,)).fetchone()
    if row:
        name, status, start, end = row
        sink.note("run_id", run_id)
        sink.note("run_name", name or run_id)
        sink.note("status", status)
        sink.note("finished", end is not None and status != "RUNNING")
        if _seconds(start) is not None:
            sink.note("start_time", _seconds(start))
        if _seconds(end) is not None:
            sink.note("end_time", _seconds(end))
    deleted = database.execute("SELECT count(*) FROM runs WHERE lifecycle_stage = 'deleted'").fetchone()[0]
    if deleted:
        sink.note("deleted_runs", deleted)
    params = database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run_id,)).fetchall()
    sink.config({str(key): plain(value) for key, value in params})


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) and milliseconds > 0 else None


@dataclass(slots=True)
class _Columns:
    """Rows collected as arrays, name by name: step, time (s), value, rowid."""

    parts: dict[bytes, list[tuple[np.ndarray, ...]]] = field(default_factory=dict)
    rows: int = 0
    refused: int = 0
    last: int = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows of any keys."""
        try:
            keys, *columns = zip(*rows, strict=True)
            steps, numbers = np.array(columns[0], dtype=np.int64), np.array(columns[2], dtype=np.float64)
            times, ids = np.array(columns[1], dtype=np.float64) / 1000, np.array(columns[3], dtype=np.int64)
        except (ValueError, TypeError, OverflowError):
            if len(rows) > 1:  # sqlite lets any type into any column: find the row that is not a metric
                for row in rows:
                    self.add([row])
            else:
                self.refused += 1
            return
        codes = {name: code for code, name in enumerate(dict.fromkeys(cast("tuple[bytes, ...]", keys)))}
        coded = np.fromiter(map(codes.__getitem__, keys), dtype=np.int64, count=len(keys))
        for name, code in codes.items():
            chosen = coded == code
            self._put(name, tuple(array[chosen] for array in (steps, times, numbers, ids)))

    def take(self, rows: np.ndarray, key: bytes) -> None:
        """Take the rows of a key as a table; its stand-in for NaN is given back."""
        if len(rows):
            numbers = rows["value"].copy()
            numbers[numbers == STAND_IN] = np.nan
            self._put(key, (rows["step"].copy(), rows["time"] / 1000, numbers, rows["id"].copy()))

    def _put(self, key: bytes, arrays: tuple[np.ndarray, ...]) -> None:
        numbers = arrays[2]
        numbers[numbers >= INFINITE] = np.inf
        numbers[numbers <= -INFINITE] = -np.inf
        self.rows += len(numbers)
        self.last = max(self.last, int(arrays[3][-1]))
        self.parts.setdefault(key, []).append(arrays)

    def emit(self, sink: Sink) -> None:
        """Write the signals in the order in which their first rows were written."""
        joined = {name: tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True)) for name, parts in self.parts.items()}
        for name, arrays in sorted(joined.items(), key=lambda item: int(item[1][3].min())):
            ids = arrays[3]
            order = np.argsort(ids, kind="stable") if (ids[1:] < ids[:-1]).any() else slice(None)
            steps, times, numbers, ids = (array[order] for array in arrays)
            sink.points(_text(name), steps, numbers, wall_times=times, records=ids)


def _metrics(database: sqlite3.Connection, sink: Sink, run_id: str) -> None:
    database.text_factory = bytes  # a name is decoded once, not in every row
    columns = _by_key(database, run_id)
    if columns is None:
        columns = _in_order(database, run_id, sink)
    if columns.refused:
        sink.damage(f"{columns.refused} rows are not metrics (a text where a number should be)", f"{columns.refused} points")
    columns.emit(sink)


def _by_key(database: sqlite3.Connection, run_id: str) -> _Columns | None:
    """The rows through the indexes; None where these are damaged or do not agree, or hold what is no number."""
    try:
        (count,) = database.execute("SELECT count(*) FROM metrics WHERE run_uuid = ?", (run_id,)).fetchone()
        for names in _NAMES:
            columns = _Columns()
            with suppress(sqlite3.OperationalError):  # an old store has no such table
                for (key,) in database.execute(names, (run_id,)).fetchall():
                    columns.take(np.fromiter(database.execute(_SELECT_KEY, (run_id, key)), dtype=_ROW), key)
            if columns.rows == count:
                return columns
    except (*FAULTS, TypeError, ValueError, OverflowError):
        pass
    return None


def _in_order(database: sqlite3.Connection, run_id: str, sink: Sink) -> _Columns:
    """The rows out of the table itself, which need not be whole."""
    columns = _Columns()
    count = 0
    try:
        for rows in _blocks(database.execute(f"{_SELECT} WHERE run_uuid = ? ORDER BY rowid", (run_id,))):
            columns.add(rows)
        (count,) = database.execute("SELECT count(*) FROM metrics WHERE run_uuid = ?", (run_id,)).fetchone()
    except FAULTS as problem:
        lost = _salvage(database, run_id, columns)
        sink.damage(f"the table of metrics is damaged ({problem})", f"about {lost} of its rows" if lost is not None else "its rows from there on")
        return columns
    missing = count - columns.rows - columns.refused
    if missing:
        said = f"{missing} of its rows" if missing > 0 else "no row that the table still holds; others may be missing"
        sink.damage("the table of metrics and its indexes do not agree", said)
    return columns


def _blocks(cursor: sqlite3.Cursor) -> Iterator[list[Row]]:
    while rows := cursor.fetchmany(FETCH):
        yield rows


def _salvage(database: sqlite3.Connection, run_id: str, columns: _Columns) -> int | None:
    """Read on behind a damaged page, without the indexes. How many row numbers could not be read; None where unknown."""
    known = True
    try:
        top = max((int(row[0] or 0) for row in database.execute("SELECT max(rowid) FROM metrics NOT INDEXED")), default=0)
    except FAULTS:
        known = False  # the last rows are among the damaged ones: go as far as there can be rows
        top = columns.last + database.execute("PRAGMA page_count").fetchone()[0] * ROWS_PER_PAGE
    lost = tries = dead = 0
    stack = [(low, min(low + SALVAGE_STEP - 1, top)) for low in range(columns.last + 1, top + 1, SALVAGE_STEP)][::-1]
    while stack and tries < SALVAGE_TRIES and (known or dead < SALVAGE_DEAD):
        low, high = stack.pop()
        tries += 1
        try:
            rows: Sequence[Row] = database.execute(f"{_SELECT} WHERE rowid BETWEEN ? AND ? AND run_uuid = ?", (low, high, run_id)).fetchall()
            if rows:
                columns.add(rows)
                dead = 0
        except FAULTS:
            if low == high:
                lost += 1
                dead += 1
            else:
                middle = (low + high) // 2
                stack += [(middle + 1, high), (low, middle)]
    return lost + sum(high - low + 1 for low, high in stack) if known else None
