"""What a user would run instead: ``python -m tests.benchmarks._ingest_references NAME PATH`` prints the points it read.

Each imports only its own packages, for the whole process is measured. Exits with MISSING where one is not installed.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

MISSING = 69
"""As in ``_ingest_logs``, which is not imported here because it imports numpy."""

BLOCK = 32_768
"""Bytes of a block of a W&B file."""


def tbparse(path: Path) -> int:
    """The table of scalars, with wall times."""
    from tbparse import SummaryReader

    return len(SummaryReader(str(path), pivot=False, extra_columns={"wall_time"}).scalars)


def leet(path: Path) -> int:
    """W&B's own dump, and its history lines read as JSON."""
    import importlib.util

    if importlib.util.find_spec("wandb") is None:
        raise ModuleNotFoundError(name="wandb")
    command = [str(Path(sys.executable).parent / "wandb"), "leet", "inspect", "--json", str(_wandb_file(path))]
    table: dict[str, list[object]] = defaultdict(list)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as dump:
        assert dump.stdout is not None
        for line in dump.stdout:
            if b'"type":"history"' in line[:60]:
                for key, value in json.loads(line)["history"]["item"].items():
                    table[key].append(value)
    return sum(map(len, table.values()))


def protobuf(path: Path) -> int:
    """Framing by hand and W&B's message classes; checksums are not looked at."""
    from wandb.proto import wandb_internal_pb2

    table: dict[str, list[object]] = defaultdict(list)
    for raw in _records(_wandb_file(path).read_bytes()):
        record = wandb_internal_pb2.Record.FromString(raw)
        if record.WhichOneof("record_type") == "history":
            for item in record.history.item:
                table[item.key or ".".join(item.nested_key)].append(json.loads(item.value_json))
    return sum(map(len, table.values()))


def mlflow_sqlite(path: Path) -> int:
    """get_metric_history on the database."""
    return _mlflow(f"sqlite:///{path / 'mlflow.db'}")


def mlflow_files(path: Path) -> int:
    """get_metric_history on the file store."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    return _mlflow(f"file://{path / 'mlruns'}")


def json_numpy(path: Path) -> int:
    """The log history as one array per key."""
    import numpy as np

    history = json.loads((path / "trainer_state.json").read_bytes())["log_history"]
    table = {key: np.array([entry.get(key, np.nan) for entry in history], np.float64) for key in {k for entry in history for k in entry} - {"step"}}
    return sum(len(entry) - 1 for entry in history) if table else 0


def polars_csv(path: Path) -> int:
    """The table, each column collected as an array."""
    import polars as pl

    return _collected(pl.read_csv(path / "metrics.csv"))


def polars_jsonl(path: Path) -> int:
    """The table, each column collected as an array."""
    import polars as pl

    return _collected(pl.read_ndjson((path / "finite" if (path / "finite").exists() else path) / "metrics.jsonl"))


def _collected(frame: object) -> int:
    arrays = {name: frame[name].to_numpy() for name in frame.columns}  # type: ignore[attr-defined, index]
    return sum(len(array) for name, array in arrays.items() if name != "step")


def _mlflow(address: str) -> int:
    from mlflow import MlflowClient

    client = MlflowClient(address)
    experiment = next(e for e in client.search_experiments() if e.name == "forensics")
    (run,) = client.search_runs([experiment.experiment_id])
    total = 0
    for key in run.data.metrics:
        history = client.get_metric_history(run.info.run_id, key)
        table = ([m.step for m in history], [m.value for m in history], [m.timestamp for m in history])
        total += len(table[0])
    return total


def _wandb_file(path: Path) -> Path:
    return next(path.glob("wandb/*run-*/*.wandb"))


def _records(data: bytes) -> Iterator[bytes]:
    header = struct.Struct("<IHB").unpack_from
    position, pending = 7, b""
    while position + 7 <= len(data):
        left = BLOCK - position % BLOCK
        if left < 7:
            position += left
            continue
        _, length, kind = header(data, position)
        part = data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):
            yield part if kind == 1 else pending + part
        else:
            pending = part if kind == 2 else pending + part


NAMES = {
    "tbparse": tbparse,
    "wandb leet + json": leet,
    "wandb protobuf": protobuf,
    "MlflowClient (sqlite)": mlflow_sqlite,
    "MlflowClient (files)": mlflow_files,
    "json + numpy": json_numpy,
    "polars read_csv": polars_csv,
    "polars read_ndjson": polars_jsonl,
}


def main(name: str, path: str) -> int:
    """Read one log."""
    try:
        points = NAMES[name](Path(path))
    except ModuleNotFoundError as missing:
        sys.stdout.write(f"{missing.name}\n")
        return MISSING
    sys.stdout.write(f"{points}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
