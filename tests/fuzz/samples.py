"""The real files that are damaged, one per format and shape, and what a whole file of the format is.

``whole`` is an independent and strict reader: where it accepts a damaged copy, the copy is a valid file that merely holds
less, and no reader could know. Anything else that lost points must say so.
"""

from __future__ import annotations

import json
import re
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"

RUN, ROWS = "f59ede8a83e74eb4918902734d71ff08", 160
"""The run of the MLflow store that is made here, and its rows."""

BLOCK = 32_768
"""Bytes of a block of a W&B file."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A log to damage. ``folder`` is copied, ``file`` in it is damaged, ``target`` in it is read.

    ``least`` is the fewest bytes one point takes in the format; ``sealed`` says that checksums guard every point.
    """

    format: str
    folder: Path
    file: str
    whole: Callable[[bytes], bool] | None
    least: int
    target: str = ""
    sealed: bool = False


def samples(made: Path) -> tuple[Sample, ...]:
    """Every sample; ``made`` is a folder in which the ones without a fixture are made."""
    run = next(FIXTURES.glob("mlflow/mlruns/*/*/metrics")).parent
    home = run.parent
    events = "events.out.tfevents.1700000000.host"
    found = [
        *(
            Sample("tensorboard", FIXTURES / "tensorboard" / folder, name, _whole_events, 7, name, sealed=True)
            for folder, name in (
                ("restart", f"{events}.1.0"),
                ("hparams", f"{events}.1.0"),
                ("tensor_float_val", f"{events}.1.0"),
                ("tensorboardx", events),
                ("tensor_content", f"{events}.1.0.v2"),
            )
        ),
        Sample("wandb", FIXTURES / "wandb", "run-fixture1.wandb", _whole_wandb, 4, "run-fixture1.wandb", sealed=True),
        Sample("hf_trainer", FIXTURES / "hf/trainer", "trainer_state.json", _whole_state, 5),
        Sample("hf_trainer", FIXTURES / "hf/custom_keys", "trainer_state.json", _whole_state, 5),
        Sample("csv", FIXTURES / "csv/sparse_eval", "metrics.csv", _whole_csv, 2),
        Sample("jsonl", FIXTURES / "jsonl/olmo_names", "metrics.jsonl", _whole_lines, 5),
        Sample("mlflow_files", home, f"{run.name}/metrics/loss", _whole_metric, 3, run.name),
        Sample("mlflow_files", home, f"{run.name}/meta.yaml", None, 0, run.name),
        *(Sample("console", path.parent, path.name, None, 2, path.name) for path in sorted((FIXTURES / "console").glob("*.*")) if path.suffix != ".md"),
        _database(made),
    ]
    return tuple(found)


def _database(made: Path) -> Sample:
    """MLflow's two tables as its migrations make them, with the indexes that guard the rows."""
    made.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(made / "mlflow.db")) as database:
        database.executescript(
            """
            PRAGMA page_size = 1024;
            CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250), status VARCHAR(9), start_time BIGINT, end_time BIGINT,
                lifecycle_stage VARCHAR(20));
            CREATE TABLE params (key VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL, PRIMARY KEY (key, run_uuid));
            CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL,
                step BIGINT NOT NULL, is_nan BOOLEAN NOT NULL, PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
            CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);
            """
        )
        database.execute("INSERT INTO runs VALUES (?, 'fuzz', 'FINISHED', 1700000000000, 1700000100000, 'active')", (RUN,))
        database.execute("INSERT INTO params VALUES ('lr', '0.0003', ?)", (RUN,))
        rows = ((name, 2 - step / 100, 1_700_000_000_000 + step, RUN, step, step == 50) for step in range(ROWS // 2) for name in ("loss", "grad_norm"))
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    return Sample("mlflow_sqlite", made, "mlflow.db", _whole_database, 8)


def _whole_events(data: bytes) -> bool:
    position = 0
    while position < len(data):
        if position + 12 > len(data):
            return False
        (length,) = struct.unpack_from("<Q", data, position)
        stop = position + 12 + length
        if stop + 4 > len(data):
            return False
        for start, end in ((position, position + 8), (position + 12, stop)):
            if _masked_crc(data[start:end]) != struct.unpack_from("<I", data, end)[0]:
                return False
        position = stop + 4
    return True


def _masked_crc(data: bytes) -> int:
    table = _crc_table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return tuple(table)


def _whole_wandb(data: bytes) -> bool:
    if data[:7] != b":W&B\xe1\xbe\x00":
        return False
    position, inside = 7, False
    while position < len(data):
        left = BLOCK - position % BLOCK
        if left < 7:
            if data[position : position + left].strip(b"\0"):
                return False
            position += left
            continue
        if position + 7 > len(data):
            return False
        crc, length, kind = struct.unpack_from("<IHB", data, position)
        stop = position + 7 + length
        if stop > len(data) or length > left - 7 or kind not in (1, 2, 3, 4) or inside != (kind in (3, 4)):
            return False
        if zlib.crc32(data[position + 6 : stop]) != crc:
            return False
        inside = kind in (2, 3)
        position = stop
    return not inside


def _whole_state(data: bytes) -> bool:
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(state, dict) and isinstance(state.get("log_history"), list) and all(isinstance(entry, dict) for entry in state["log_history"])


def _whole_lines(data: bytes) -> bool:
    try:
        return all(isinstance(json.loads(line), dict) for line in data.split(b"\n") if line.strip())
    except (ValueError, RecursionError):
        return False


_CELL = re.compile(r'\s*"?\s*([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|nan|inf(inity)?|-?inf|na|n/a|none|null|-|--|)\s*"?\s*', re.IGNORECASE)


def _whole_csv(data: bytes) -> bool:
    lines = [line for line in re.split(rb"\r\n|\n|\r", data) if line.strip() and not line.lstrip().startswith(b"#")]
    if not lines:
        return True
    try:
        rows = [line.decode().split(",") for line in lines]
    except UnicodeDecodeError:
        return False
    table = [row for row in rows if row != rows[0]]
    return all(len(row) == len(rows[0]) for row in table) and all(_is_column(name, cells) for name, *cells in zip(rows[0], *table, strict=True))


def _is_column(name: str, cells: list[str]) -> bool:
    """Numbers throughout, or a column of texts, which no curve of training is."""
    bad = sum(_CELL.fullmatch(cell) is None for cell in cells)
    return not bad or (not any(any(map(str.isdigit, cell)) and _CELL.fullmatch(cell) for cell in cells) and not re.search("loss|lr|grad", name))


def _whole_metric(data: bytes) -> bool:
    return all(re.fullmatch(rb"\s*[-+]?\d+\s+\S+\s+[-+]?\d+\s*", line) for line in data.split(b"\n") if line.strip())


def _whole_database(data: bytes) -> bool:
    connection = sqlite3.connect(":memory:")
    with closing(connection):
        try:
            connection.deserialize(data)
            if connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]:
                return True
        except (sqlite3.Error, OverflowError, UnicodeDecodeError):
            pass
        try:  # a row whose run id was hit is a row of another run to every reader: nothing has a checksum here
            counts = [connection.execute(f"SELECT count(*) FROM metrics {how} WHERE run_uuid = ?", (RUN,)).fetchone() for how in ("NOT INDEXED", "")]
            return counts[0] == counts[1] and connection.execute("SELECT count(*) FROM metrics NOT INDEXED").fetchone()[0] >= ROWS
        except (sqlite3.Error, OverflowError, UnicodeDecodeError):
            return False
