"""MLflow's sqlite store, read directly and read-only: every metric row in the order it was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "mlflow_sqlite"

MAGIC = b"SQLite format 3\x00"
INFINITE = 1.7976931348623157e308
"""The store writes infinities as the largest finite numbers."""
FETCH = 65_536
MAX_RUNS = 10_000

_COLUMNS = {"metrics": {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}, "runs": {"run_uuid", "status", "start_time"}}


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
    return Claim(NAME, 90, tuple(RunKey(str(uuid), str(name or ""), (start or 0) / 1000) for uuid, name, start in rows))


def parse(source: Source, sink: Sink, run: RunKey) -> None:
    """Read one run. Raises OSError where the file cannot be opened."""
    sink.progress(source.size)
    try:
        with closing(_open(source.path)) as database:
            _facts(database, sink, run)
            _metrics(database, sink, run)
    except sqlite3.Error as problem:
        sink.damage(f"the database is damaged ({problem})", "what was not read before this point")


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
        database.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        return database
    raise sqlite3.OperationalError("cannot be opened read-only")


def _is_mlflow(database: sqlite3.Connection) -> bool:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")}
    return all(
        table in tables and needed <= {row[1] for row in database.execute(f"PRAGMA table_info({table})")}  # table is a constant of this module
        for table, needed in _COLUMNS.items()
    )


def _facts(database: sqlite3.Connection, sink: Sink, run: RunKey) -> None:
    row = database.execute("SELECT name, status, start_time, end_time FROM runs WHERE run_uuid = ?", (run.id,)).fetchone()
    if row:
        name, status, start, end = row
        sink.note("run_id", run.id)
        sink.note("run_name", name or run.id)
        sink.note("status", status)
        sink.note("finished", end is not None and status == "FINISHED")
        if start:
            sink.note("start_time", start / 1000)
    deleted = database.execute("SELECT count(*) FROM runs WHERE lifecycle_stage = 'deleted'").fetchone()[0]
    if deleted:
        sink.note("deleted_runs", deleted)
    params = database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run.id,)).fetchall()
    sink.config({key: plain(value) for key, value in params})


def _metrics(database: sqlite3.Connection, sink: Sink, run: RunKey) -> None:
    keys: dict[str, int] = {}
    blocks: list[tuple[np.ndarray, ...]] = []
    query = "SELECT key, step, timestamp, value, is_nan, rowid FROM metrics WHERE run_uuid = ? ORDER BY rowid"
    problem: sqlite3.Error | None = None
    try:
        for rows in _blocks(database.execute(query, (run.id,))):
            names, steps, stamps, values, nans, ids = zip(*rows, strict=True)
            codes = np.array([keys.setdefault(name, len(keys)) for name in names])
            number = np.array(values, dtype=np.float64)
            number[np.array(nans, dtype=bool)] = np.nan
            number[number >= INFINITE] = np.inf
            number[number <= -INFINITE] = -np.inf
            blocks.append((codes, np.array(steps, dtype=np.int64), np.array(stamps, dtype=np.float64) / 1000, number, np.array(ids, dtype=np.int64)))
    except sqlite3.Error as reason:
        problem = reason
    if blocks:
        codes, steps_, times, number, ids_ = (np.concatenate([b[i] for b in blocks]) for i in range(5))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
        for name, code in keys.items():
            index = order[bounds[code] : bounds[code + 1]]
            sink.points(name, steps_[index], number[index], wall_times=times[index], records=ids_[index])
    if problem is not None:
        raise problem


def _blocks(cursor: sqlite3.Cursor) -> Iterator[list[tuple]]:
    while rows := cursor.fetchmany(FETCH):
        yield rows


def plain(text: object) -> object:
    """A parameter as the number or boolean it was before MLflow made it text."""
    if not isinstance(text, str):
        return text
    if text in {"True", "False"}:
        return text == "True"
    if text == "None":
        return None
    for kind in (int, float):
        try:
            return kind(text) if len(text) < 64 and "_" not in text else text
        except ValueError:
            continue
    return text
