"""MLflow's sqlite store, read directly and read-only: every metric row in the order it was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "mlflow_sqlite"

MAGIC = b"SQLite format 3\x00"
INFINITE = 1.7976931348623157e308
"""The store writes infinities as the largest finite numbers."""
FETCH = 8_192
"""Rows per fetch: enough to amortise the call, few enough that their objects stay in the cache."""
MAX_RUNS = 10_000
SALVAGE_STEP = 512
"""Rows tried at once behind a damaged place; a failing stretch is halved down to one row."""
SALVAGE_TRIES = 20_000
"""Bound on the queries spent on one damaged table."""

Row: TypeAlias = tuple[bytes, int, int, float | None, int]
"""key, step, timestamp in ms, value (None = NaN), rowid."""

_NEEDED = {"metrics": {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}, "runs": {"run_uuid", "status", "start_time"}}
_SELECT = "SELECT key, step, timestamp, CASE is_nan WHEN 0 THEN value END, rowid FROM metrics"


def sniff(source: Source) -> Claim | None:
    """Claim a sqlite file that has MLflow's tables; a damaged one only where its name or head says MLflow."""
    if source.is_dir or not source.head.startswith(MAGIC):
        return None
    try:
        with closing(_open(source.path)) as database:
            if not _is_mlflow(database):
                return None
            rows = database.execute(
                "SELECT run_uuid, name, start_time FROM runs WHERE lifecycle_stage IS NOT 'deleted' ORDER BY start_time, rowid LIMIT ?", (MAX_RUNS,)
            ).fetchall()
    except sqlite3.Error:
        suspect = b"is_nan" in source.head or "mlflow" in source.path.name.lower()
        return Claim(NAME, 80) if suspect else None
    return Claim(NAME, 90, tuple(RunKey(str(uuid), str(name or ""), _seconds(start) or 0.0) for uuid, name, start in rows))


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read one run. Raises OSError where the file cannot be opened."""
    sink.progress(source.size)
    try:
        with closing(_open(source.path)) as database:
            run_id = run.id or _only_run(database)
            try:
                _facts(database, sink, run_id)
            except sqlite3.Error as problem:
                sink.damage(f"the tables of runs and parameters are damaged ({problem})", "status and settings of the run")
            _metrics(database, sink, run_id)
    except sqlite3.Error as problem:
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


def _open(path: Path) -> sqlite3.Connection:
    """Read-only; ``immutable`` where the folder does not allow the locks of a live database."""
    address = path.absolute().as_uri()
    for options in ("mode=ro", "mode=ro&immutable=1"):
        database = sqlite3.connect(f"{address}?{options}", uri=True)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            database.close()
            continue
        except sqlite3.Error:
            database.close()
            raise
        database.text_factory = _text
        return database
    raise sqlite3.OperationalError("cannot be opened read-only")


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
    """Rows collected as arrays: name code, step, time (s), value, rowid."""

    codes: dict[bytes, int] = field(default_factory=dict)
    blocks: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    refused: int = 0
    last: int = 0

    def add(self, rows: list[Row]) -> None:
        try:
            names, steps, stamps, values, ids = zip(*rows, strict=True)
            arrays = (np.array(steps, dtype=np.int64), np.array(stamps, dtype=np.float64) / 1000, np.array(values, dtype=np.float64))
        except (ValueError, TypeError, OverflowError):
            if len(rows) > 1:  # sqlite lets any type into any column: find the row that is not a metric
                for row in rows:
                    self.add([row])
            else:
                self.refused += 1
            return
        numbers = arrays[2]
        numbers[numbers >= INFINITE] = np.inf
        numbers[numbers <= -INFINITE] = -np.inf
        for name in set(names).difference(self.codes):
            self.codes[name] = len(self.codes)
        codes = np.fromiter(map(self.codes.__getitem__, names), dtype=np.int64, count=len(names))
        self.blocks.append((codes, *arrays, np.array(ids, dtype=np.int64)))
        self.last = max(self.last, int(ids[-1]))

    def emit(self, sink: Sink) -> None:
        if not self.blocks:
            return
        codes, steps, times, numbers, ids = (np.concatenate([b[i] for b in self.blocks]) for i in range(5))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(self.codes) + 1))
        first = {name: int(ids[order[bounds[code]]]) for name, code in self.codes.items()}
        for name in sorted(first, key=first.__getitem__):
            index = order[bounds[self.codes[name]] : bounds[self.codes[name] + 1]]
            sink.points(_text(name), steps[index], numbers[index], wall_times=times[index], records=ids[index])


def _metrics(database: sqlite3.Connection, sink: Sink, run_id: str) -> None:
    columns = _Columns()
    database.text_factory = bytes  # a name is decoded once, not in every row
    try:
        for rows in _blocks(database.execute(f"{_SELECT} WHERE run_uuid = ? ORDER BY rowid", (run_id,))):
            columns.add(rows)
    except sqlite3.Error as problem:
        lost = _salvage(database, run_id, columns)
        sink.damage(f"the table of metrics is damaged ({problem})", f"about {lost} of its rows" if lost is not None else "its rows from there on")
    if columns.refused:
        sink.damage(f"{columns.refused} rows are not metrics (a text where a number should be)", f"{columns.refused} points")
    columns.emit(sink)


def _blocks(cursor: sqlite3.Cursor) -> Iterator[list[Row]]:
    while rows := cursor.fetchmany(FETCH):
        yield rows


def _salvage(database: sqlite3.Connection, run_id: str, columns: _Columns) -> int | None:
    """Read on behind a damaged page, without the indexes. How many row numbers could not be read; None where unknown."""
    try:
        top = max((int(row[0] or 0) for row in database.execute("SELECT max(rowid) FROM metrics NOT INDEXED")), default=0)
    except sqlite3.Error:
        return None
    lost = 0
    tries = 0
    stack = [(low, min(low + SALVAGE_STEP - 1, top)) for low in range(columns.last + 1, top + 1, SALVAGE_STEP)][::-1]
    while stack and tries < SALVAGE_TRIES:
        low, high = stack.pop()
        tries += 1
        try:
            rows: Iterable[Row] = database.execute(f"{_SELECT} NOT INDEXED WHERE rowid BETWEEN ? AND ? AND run_uuid = ?", (low, high, run_id)).fetchall()
            if rows:
                columns.add(list(rows))
        except sqlite3.Error:
            if low == high:
                lost += 1
            else:
                middle = (low + high) // 2
                stack += [(middle + 1, high), (low, middle)]
    return lost + sum(high - low + 1 for low, high in stack)
