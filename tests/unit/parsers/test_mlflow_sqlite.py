"""MLflow's sqlite store: damaged databases first, then look-alikes, then the plain case in the real schema."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forensics.model import Signal
from forensics.parsers import mlflow_sqlite
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector

SCHEMA = """
CREATE TABLE experiments (experiment_id INTEGER NOT NULL, name VARCHAR(256) NOT NULL, lifecycle_stage VARCHAR(32),
    CONSTRAINT experiment_pk PRIMARY KEY (experiment_id));
CREATE TABLE "runs" (
    run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), source_type VARCHAR(20), source_name VARCHAR(500), entry_point_name VARCHAR(50),
    user_id VARCHAR(256), status VARCHAR(9), start_time BIGINT, end_time BIGINT, source_version VARCHAR(50), lifecycle_stage VARCHAR(20),
    artifact_uri VARCHAR(200), experiment_id INTEGER, deleted_time BIGINT,
    CONSTRAINT run_pk PRIMARY KEY (run_uuid),
    CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')),
    FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id),
    CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED')));
CREATE TABLE "metrics" (
    "key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL,
    step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
    CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan),
    FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), CHECK (is_nan IN (0, 1)));
CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);
CREATE TABLE "params" ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL,
    CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid));
CREATE TABLE "tags" ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000), run_uuid VARCHAR(32) NOT NULL, CONSTRAINT tag_pk PRIMARY KEY ("key", run_uuid));
"""


def store(path: Path, rows: list[tuple[object, ...]], runs: list[tuple[str, str, str, int, int | None, str]] | None = None) -> Path:
    """A store with metric rows (key, value, timestamp, run, step, is_nan) and runs (id, name, status, start, end, stage)."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
        for uuid, name, status, start, end, stage in runs or [("a", "calm-fox-1", "FINISHED", 1_000_000_000_000, 1_000_000_001_000, "active")]:
            database.execute(
                "INSERT INTO runs (run_uuid, name, status, start_time, end_time, lifecycle_stage) VALUES (?, ?, ?, ?, ?, ?)",
                (uuid, name, status, start, end, stage),
            )
        database.executemany("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.executemany(
            "INSERT INTO params VALUES (?, ?, 'a')", [("lr", "0.001"), ("layers", "2"), ("fp16", "False"), ("sched", "cosine"), ("tag", "1_000")]
        )
        database.commit()
    return path


def read(path: Path, run: str = "a") -> tuple[dict[str, Signal], Collector]:
    collector = Collector()
    mlflow_sqlite.parse(Source.of(path), collector.sink(str(path), "mlflow_sqlite"), RunKey(run))
    return {s.name: s for s in collector.signals()}, collector


def points(count: int) -> list[tuple[object, ...]]:
    return [("loss", 1.0 / (i + 1), 1_000_000_000_000 + i, "a", i, 0) for i in range(count)]


def test_damaged_page_loses_its_rows_only(tmp_path: Path) -> None:
    path = store(tmp_path / "mlflow.db", points(5000))
    with closing(sqlite3.connect(path)) as database:
        pages = [row[0] for row in database.execute("SELECT pageno FROM dbstat WHERE name = 'metrics' AND pagetype = 'leaf' ORDER BY pageno")] if _has_dbstat(
            database
        ) else []
        size = database.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    page = pages[len(pages) // 2] if pages else len(data) // size // 3
    data[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(data)
    signals, collector = read(path)
    assert collector.damage
    if pages:
        assert 4000 < len(signals["loss"]) < 5000
        assert signals["loss"].steps[-1] == 4999


def _has_dbstat(database: sqlite3.Connection) -> bool:
    try:
        database.execute("SELECT * FROM dbstat LIMIT 1")
    except sqlite3.Error:
        return False
    return True


@pytest.mark.parametrize("keep", [50, 4096, 20_000])
def test_cut_file(tmp_path: Path, keep: int) -> None:
    path = store(tmp_path / "mlflow.db", points(2000))
    path.write_bytes(path.read_bytes()[:keep])
    claim = mlflow_sqlite.sniff(Source.of(path))
    assert claim is not None
    _, collector = read(path, claim.runs[0].id if claim.runs else "")
    assert collector.damage


def test_rows_of_wrong_type_are_counted(tmp_path: Path) -> None:
    path = store(tmp_path / "mlflow.db", [*points(5), ("loss", "what", 5, "a", 9, 0), ("loss", 0.5, 1_000_000_000_009, "a", 10, 0)])
    signals, collector = read(path)
    assert signals["loss"].steps.tolist() == [0, 1, 2, 3, 4, 10]
    assert "1 rows" in collector.damage[0].what


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE metrics (a, b)")
        database.commit()
    assert mlflow_sqlite.sniff(Source.of(path)) is None
    text = tmp_path / "mlflow.db"
    text.write_text("no database")
    assert mlflow_sqlite.sniff(Source.of(text)) is None


def test_nan_and_infinities_come_back(tmp_path: Path) -> None:
    huge = 1.7976931348623157e308
    rows: list[tuple[object, ...]] = [("loss", 0.0, 1, "a", 0, 1), ("loss", huge, 2, "a", 1, 0), ("loss", -huge, 3, "a", 2, 0), ("loss", 0.0, 4, "a", 3, 0)]
    signals, _ = read(store(tmp_path / "mlflow.db", rows))
    values = signals["loss"].values.tolist()
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 0.0]


def test_order_is_that_of_writing(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("loss", 1.0, 50, "a", 10, 0), ("lr", 1.0, 50, "a", 10, 0), ("loss", 2.0, 40, "a", 5, 0), ("loss", 3.0, 60, "a", -1, 0)]
    signals, _ = read(store(tmp_path / "mlflow.db", rows))
    assert signals["loss"].steps.tolist() == [10, 5, -1]
    assert signals["loss"].records is not None
    assert signals["loss"].records.tolist() == [1, 3, 4]
    assert signals["loss"].wall_times is not None
    assert signals["loss"].wall_times.tolist() == [0.05, 0.04, 0.06]


def test_runs_deleted_and_running(tmp_path: Path) -> None:
    runs = [("b", "late", "RUNNING", 2000, None, "active"), ("a", "early", "FINISHED", 1000, 1500, "active"), ("c", "gone", "FAILED", 500, 600, "deleted")]
    path = store(tmp_path / "mlflow.db", [*points(3), ("loss", 9.0, 1, "b", 0, 0)], runs)
    claim = mlflow_sqlite.sniff(Source.of(path))
    assert claim is not None
    assert [(r.id, r.name, r.order) for r in claim.runs] == [("a", "early", 1.0), ("b", "late", 2.0)]
    signals, collector = read(path, "b")
    assert signals["loss"].values.tolist() == [9.0]
    assert collector.notes["finished"] is False
    assert collector.notes["status"] == "RUNNING"
    assert collector.notes["deleted_runs"] == 1


def test_parameters_become_values_again(tmp_path: Path) -> None:
    _, collector = read(store(tmp_path / "mlflow.db", points(2)))
    assert collector.config == {"lr": 0.001, "layers": 2, "fp16": False, "sched": "cosine", "tag": "1_000"}
    assert collector.notes["run_name"] == "calm-fox-1"
    assert collector.notes["finished"] is True


def test_read_only_folder_is_not_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "ro"
    folder.mkdir()
    path = store(folder / "mlflow.db", points(3))
    before = path.read_bytes()
    folder.chmod(0o555)
    try:
        signals, _ = read(path)
    finally:
        folder.chmod(0o755)
    assert len(signals["loss"]) == 3
    assert path.read_bytes() == before
    assert [p.name for p in folder.iterdir()] == ["mlflow.db"]
