"""Logs of a synthetic run, written by the real writers: ``python -m tests.benchmarks._ingest_logs KIND FOLDER STEPS``.

Exits with MISSING and the name of the package on standard output where a writer is not installed.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

MISSING = 69
"""Exit status of a child whose package is not installed."""

EPOCH_MS = 1_700_000_000_000

SPIKES = 40
TAGS = 300


def columns(steps: int, *, non_finite: bool = True) -> dict[str, list[float] | list[int]]:
    """Six curves of a language model's pretraining, with spikes, a level shift, a NaN and two infinities."""
    random = np.random.default_rng(0)
    t = np.arange(steps)
    loss = 2.0 + 9.0 / np.sqrt(1 + t / 50) + 0.05 * random.standard_normal(steps)
    for at in random.integers(steps // 10, steps, SPIKES).tolist():
        width = min(200, steps - at)
        loss[at : at + width] += 3 * np.exp(-np.arange(width) / 30)
    loss[int(steps * 0.7) :] += 0.15
    rise = np.minimum(1, (t + 1) / max(1, steps // 100))
    norm = np.exp(0.3 * random.standard_normal(steps))
    if non_finite:
        middle = steps // 2
        loss[middle], norm[middle], norm[middle + 1] = np.nan, np.inf, -np.inf
    return {
        "train/loss": loss.tolist(),
        "train/lr": (3e-4 * rise * (0.1 + 0.45 * (1 + np.cos(np.pi * t / steps)))).tolist(),
        "train/grad_norm": norm.tolist(),
        "train/loss_scale": (2.0 ** (16 - (t // max(1, steps // 6)) % 4)).tolist(),
        "train/tokens_per_sec": (41000 + 900 * random.standard_normal(steps)).tolist(),
        "train/batch_id": random.permutation(steps).tolist(),
    }


def rows(steps: int, *, non_finite: bool = True) -> Iterator[dict[str, float | int]]:
    """The same, one mapping per step."""
    table = columns(steps, non_finite=non_finite)
    for values in zip(*table.values(), strict=True):
        yield dict(zip(table, values, strict=True))


def tensorboard(folder: Path, steps: int) -> None:
    """Scalars of every step through tensorboardX, else torch's SummaryWriter, else tensorboard's own writer."""
    add, close = _scalar_writer(folder)
    for step, row in enumerate(rows(steps)):
        for tag, value in row.items():
            add(tag, value, step)
    close()


def tensorboard_tags(folder: Path, steps: int) -> None:
    """Long names of many tensors, as per-layer gradient norms have them."""
    parts = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.down_proj", "input_layernorm")
    tags = [f"grad_norm/model.layers.{layer}.{part}.weight" for layer in range(TAGS // len(parts)) for part in parts]
    add, close = _scalar_writer(folder)
    random = np.random.default_rng(0)
    for step in range(steps):
        for tag, value in zip(tags, random.random(len(tags)).tolist(), strict=True):
            add(tag, value, step)
    close()


def wandb(folder: Path, steps: int) -> None:
    """An offline run: six metrics a step, and the three that W&B adds."""
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
    import wandb

    run = wandb.init(project="forensics", dir=str(folder), name="ingest", config={"lr": 3e-4, "optim": {"betas": [0.9, 0.95], "wd": 0.1}})
    for row in rows(steps):
        run.log(row)
    run.finish()


def mlflow_sqlite(folder: Path, steps: int) -> None:
    """Tables made by MLflow itself. It takes minutes per 100,000 points, so all but the first step are inserted in bulk."""
    import sqlite3

    database = folder / "mlflow.db"
    run = _mlflow_run(f"sqlite:///{database}", steps)
    table = columns(steps)
    largest = float(np.finfo(np.float64).max)

    def stored() -> Iterator[tuple[str, float, int, str, int, bool]]:
        for step, values in enumerate(zip(*table.values(), strict=True)):
            for name, value in zip(table, values, strict=True):
                if step:
                    number = min(max(value, -largest), largest) if value == value else 0.0
                    yield name, float(number), EPOCH_MS + step * 50, run, step, value != value

    connection = sqlite3.connect(database)
    connection.executemany("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)", stored())
    connection.commit()
    connection.close()


def mlflow_files(folder: Path, steps: int) -> None:
    """A run folder made by MLflow's file store; all but the first step are appended in the store's own line format."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    store = folder / "mlruns"
    run = _mlflow_run(f"file://{store}", steps)
    metrics = next(store.glob(f"*/{run}/metrics"))
    for name, values in columns(steps).items():
        with (metrics / name).open("a") as file:
            file.writelines(f"{EPOCH_MS + step * 50} {value} {step}\n" for step, value in enumerate(values) if step)


def trainer_state(folder: Path, steps: int) -> None:
    """The shape and formatting of transformers' TrainerState.save_to_json."""
    table = columns(steps)
    history: list[dict[str, float | int]] = []
    for i in range(steps):
        step = (i + 1) * 10
        history.append(
            {
                "epoch": step / 333_333,
                "grad_norm": table["train/grad_norm"][i],
                "learning_rate": table["train/lr"][i],
                "loss": round(table["train/loss"][i], 4),
                "step": step,
            }
        )
        if (i + 1) % 1000 == 0:
            history.append({"epoch": step / 333_333, "eval_loss": table["train/loss"][i], "eval_runtime": 12.1, "eval_samples_per_second": 80.2, "step": step})
    state = {"best_metric": None, "epoch": steps * 10 / 333_333, "global_step": steps * 10, "is_world_process_zero": True, "log_history": history}
    state |= {"logging_steps": 10, "max_steps": steps * 10, "num_train_epochs": 3, "stateful_callbacks": {}, "total_flos": 1.2e18, "train_batch_size": 8}
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=2, sort_keys=True) + "\n")


def csv_table(folder: Path, steps: int) -> None:
    """A table as Lightning's and Keras' CSV loggers write it."""
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["step", *columns(100)])
        writer.writeheader()
        for step, row in enumerate(rows(steps)):
            writer.writerow({"step": step, **row})


def json_lines(folder: Path, steps: int) -> None:
    """One object per step, finite values only: the reference refuses the file otherwise."""
    _json_lines(folder / "metrics.jsonl", steps, non_finite=False)


def json_lines_nan(folder: Path, steps: int) -> None:
    """The same with a NaN and two infinities in it, and beside it without, for the reference."""
    for name, non_finite in (("run", True), ("finite", False)):
        (folder / name).mkdir(exist_ok=True)
        _json_lines(folder / name / "metrics.jsonl", steps, non_finite=non_finite)


def _json_lines(path: Path, steps: int, *, non_finite: bool) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps({"step": step, **row}) + "\n" for step, row in enumerate(rows(steps, non_finite=non_finite)))


def _scalar_writer(folder: Path) -> tuple[Any, Any]:
    for package, module in (("tensorboardX", "tensorboardX"), ("torch", "torch.utils.tensorboard")):
        if find_spec(package):
            writer = __import__(module, fromlist=["SummaryWriter"]).SummaryWriter(str(folder))
            return writer.add_scalar, writer.close
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    events = EventFileWriter(str(folder))

    def add(tag: str, value: float, step: int) -> None:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        events.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    return add, events.close


def _mlflow_run(address: str, steps: int) -> str:
    """A run with its first step logged; its id."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(address)
    run = str(client.create_run(client.create_experiment("forensics"), run_name="ingest").info.run_id)
    client.log_param(run, "lr", 3e-4)
    client.log_batch(run, [Metric(name, values[0], EPOCH_MS, 0) for name, values in columns(steps).items()])
    client.set_terminated(run)
    return run


KINDS = {
    "tensorboard": tensorboard,
    "tensorboard_tags": tensorboard_tags,
    "wandb": wandb,
    "mlflow_sqlite": mlflow_sqlite,
    "mlflow_files": mlflow_files,
    "trainer_state": trainer_state,
    "csv": csv_table,
    "jsonl": json_lines,
    "jsonl_nan": json_lines_nan,
}


def main(kind: str, folder: str, steps: str) -> int:
    """Write one log."""
    try:
        KINDS[kind](Path(folder), int(steps))
    except ModuleNotFoundError as missing:
        sys.stdout.write(f"{missing.name}\n")
        return MISSING
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
