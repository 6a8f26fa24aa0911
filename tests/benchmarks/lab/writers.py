"""Write a log as the tools of the day do: names, files and nesting differ, the numbers do not."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

from tests.benchmarks.lab.recipes import Recipe
from tests.benchmarks.lab.train import Log, Row

NAMES = {
    "plain": {
        "loss": "loss",
        "lr": "lr",
        "grad_norm": "grad_norm",
        "val_loss": "val_loss",
        "batch_id": "batch_id",
        "throughput": "samples_per_sec",
        "loss_scale": "loss_scale",
        "time": "wall_time",
    },
    "lightning": {
        "loss": "train_loss_step",
        "lr": "lr-Optimizer",
        "grad_norm": "grad_2.0_norm_total",
        "val_loss": "val_loss",
        "batch_id": "batch_idx",
        "throughput": "items_per_second",
        "loss_scale": "amp_scale",
        "accuracy": "train_acc",
        "time": "timestamp",
    },
    "hf": {
        "loss": "loss",
        "lr": "learning_rate",
        "grad_norm": "grad_norm",
        "val_loss": "eval_loss",
        "throughput": "train_samples_per_second",
        "loss_scale": "loss_scale",
    },
    "train-prefix": {
        "loss": "train/loss",
        "lr": "train/learning_rate",
        "grad_norm": "train/grad_norm",
        "val_loss": "eval/loss",
        "batch_id": "train/batch_id",
        "throughput": "perf/samples_per_second",
        "loss_scale": "train/loss_scale",
        "accuracy": "train/accuracy",
        "reward": "train/reward",
        "entropy": "train/entropy",
    },
    "megatron": {
        "loss": "lm loss",
        "lr": "learning-rate",
        "grad_norm": "grad-norm",
        "val_loss": "lm loss validation",
        "throughput": "throughput/samples",
        "batch_size": "batch-size",
        "loss_scale": "loss-scale",
        "param_norm": "params-norm",
        "samples": "consumed-samples",
    },
    "nested": {
        "loss": "train.loss",
        "lr": "optim.lr",
        "grad_norm": "optim.total_grad_norm",
        "val_loss": "valid.loss",
        "batch_id": "data.batch_id",
        "loss_scale": "amp.scale",
        "throughput": "speed.items_per_sec",
        "accuracy": "train.acc",
    },
    "short": {"loss": "nll", "lr": "lr", "grad_norm": "gnorm", "val_loss": "valid_nll", "batch_size": "bsz", "throughput": "ups", "loss_scale": "loss_scale"},
}
OF_TASK = {
    "gan": {"loss": ("loss_D", "d_loss", "train/loss_discriminator"), "loss_G": ("loss_G", "g_loss", "train/loss_generator")},
    "policy": {
        "loss": ("policy_loss", "loss", "train/policy_loss"),
        "reward": ("reward", "mean_reward", "rollout/ep_rew_mean"),
        "entropy": ("entropy", "policy_entropy", "train/entropy"),
    },
    "q": {"loss": ("loss", "td_loss", "q_loss")},
    "vae": {"loss": ("loss", "elbo_loss", "train/loss")},
}
"""What people call the losses of these tasks, in three habits."""

ALWAYS = ("step", "loss", "lr", "grad_norm", "val_loss", "loss_scale", "loss_G", "reward", "entropy", "batch_size")
OPTIONAL = ("batch_id", "param_norm", "throughput", "epoch", "samples", "time", "accuracy", "kl_loss", "recon_loss")


def logged(recipe: Recipe, log: Log) -> tuple[str, ...]:
    """Own names of what this run logs."""
    there = dict.fromkeys(k for row in log.rows for k in row)
    keep = [
        k
        for k in there
        if k in ALWAYS or (k in OPTIONAL and k in recipe.extras) or (k == "attn_logit_max" and "attn" in recipe.extras) or k.startswith("grad_norm/")
    ]
    if "batch_size" in keep and recipe.batch_ramp == (0, 0) and recipe.seed % 3:
        keep.remove("batch_size")
    if recipe.style == "hf":
        keep = [k for k in keep if k not in {"batch_size", "param_norm", "samples", "time", "batch_id"}]
    return tuple(keep)


def write(folder: Path, recipe: Recipe, log: Log) -> tuple[str, list[str]]:
    """Write a run into a folder: (format, logged names)."""
    folder.mkdir(parents=True, exist_ok=True)
    of_task = {k: habits[recipe.seed % 3] for k, habits in OF_TASK.get(recipe.task, {}).items()}
    names = {k: of_task.get(k, NAMES[recipe.style].get(k, k)) for k in logged(recipe, log) if k != "step"}
    rows = [{"step": int(row["step"]), **{names[k]: v for k, v in row.items() if k in names}} for row in log.rows]
    _WRITERS[recipe.writer](folder, recipe, rows)
    if recipe.config:
        (folder / "config.json").write_text(json.dumps(_config(recipe)))
    return recipe.writer, sorted(names.values())


def _csv(folder: Path, recipe: Recipe, rows: list[Row]) -> None:
    columns = list(dict.fromkeys(k for row in rows for k in row))
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _jsonl(folder: Path, recipe: Recipe, rows: list[Row]) -> None:
    with (folder / "log.jsonl").open("w") as file:
        for row in rows:
            made: dict[str, object] = {}
            for name, value in row.items():
                inner, *path = reversed(name.split(".")) if recipe.style == "nested" else (name,)
                place = made
                for part in reversed(path):
                    place = place.setdefault(part, {})  # type: ignore[assignment]
                place[inner] = value
            file.write(json.dumps(made) + "\n")


def _hf(folder: Path, recipe: Recipe, rows: list[Row]) -> None:
    history = [{**row, "epoch": round(row.get("epoch", row["step"] / recipe.steps), 4)} for row in rows]
    state = {
        "global_step": int(rows[-1]["step"]),
        "max_steps": recipe.steps,
        "logging_steps": recipe.every,
        "num_train_epochs": 1,
        "is_world_process_zero": True,
        "log_history": history,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=1))


def _tb(folder: Path, recipe: Recipe, rows: list[Row]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    with (folder / "events.out.tfevents.1700000000.lab").open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        time = 1.7e9
        for row in rows:
            time = row.get("time", row.get("timestamp", row.get("wall_time", time + 0.05 * recipe.every)))
            values = [Summary.Value(tag=name, simple_value=value) for name, value in row.items() if name != "step"]
            writer.write(Event(wall_time=time, step=int(row["step"]), summary=Summary(value=values)).SerializeToString())
        writer.flush()


_WRITERS = {"csv": _csv, "jsonl": _jsonl, "hf": _hf, "tb": _tb}


def _config(r: Recipe) -> dict[str, object]:
    """Settings as a config file names them; nothing in it tells of a fault."""
    made: dict[str, object] = {
        "model": r.model,
        "optimizer": {"momentum": "sgd", "nesterov": "sgd"}.get(r.optimizer, r.optimizer),
        "lr": r.lr,
        "max_steps": r.steps,
        "batch_size": r.batch,
        "lr_schedule": r.schedule,
        "warmup_steps": r.warmup,
        "weight_decay": r.weight_decay,
        "max_grad_norm": r.clip,
        "gradient_accumulation_steps": r.accumulate,
        "seed": r.seed,
        "precision": r.precision,
        "dropout": r.dropout,
    }
    if r.optimizer in {"adam", "adamw", "nadam"}:
        made["betas"] = [0.9, r.beta2]
    if r.optimizer in {"momentum", "nesterov"}:
        made["momentum"] = r.momentum
    return {k: v for k, v in made.items() if not (isinstance(v, float) and math.isnan(v))}
