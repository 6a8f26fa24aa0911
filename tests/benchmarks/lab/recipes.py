"""What is trained: one recipe per run, drawn from a seed. Two mixes of models and optimizers, so that one can be kept unseen."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Kind:
    """A task with its model, and the learning rate that suits it under Adam."""

    task: str
    model: str
    adam_lr: float
    steps: tuple[int, int]
    batch: tuple[int, ...]
    width: tuple[int, ...] = (48, 64)
    depth: tuple[int, ...] = (2,)


TUNE = (
    Kind("images", "mlp", 1e-3, (800, 3000), (16, 32, 64), depth=(2, 3)),
    Kind("images", "cnn", 2e-3, (600, 1500), (16, 32)),
    Kind("language", "gru", 3e-3, (500, 1000), (8, 16)),
    Kind("language", "pre", 2e-3, (500, 1000), (8, 16), width=(32, 48)),
    Kind("regression", "mlp", 1e-3, (800, 3000), (16, 64)),
    Kind("vae", "vae", 1e-3, (800, 2000), (32,)),
    Kind("gan", "gan", 5e-4, (800, 2000), (32, 64)),
    Kind("policy", "policy", 1e-3, (800, 2000), (32, 64)),
)
HOLDOUT = (
    Kind("images", "resmlp", 7e-4, (800, 2500), (16, 32), depth=(4, 6)),
    Kind("images", "cnn", 1e-3, (600, 1500), (32, 64)),
    Kind("language", "lstm", 4e-3, (500, 1000), (8, 16), depth=(1, 2)),
    Kind("language", "pre", 1e-3, (500, 1000), (8, 12), width=(40,), depth=(1, 3)),
    Kind("language", "post", 1e-3, (500, 1000), (8, 16), width=(32,)),
    Kind("regression", "resmlp", 7e-4, (800, 2500), (32, 64), depth=(3,)),
    Kind("contrast", "mlp", 1e-3, (800, 1500), (32,)),
    Kind("q", "q", 7e-4, (800, 2500), (32, 64)),
    Kind("gan", "gan", 3e-4, (800, 2000), (32,)),
)
MIXES = {"tune": TUNE, "holdout": HOLDOUT}

OPTIMIZERS = {
    "tune": (("adamw", 0.4), ("adam", 0.2), ("momentum", 0.25), ("rmsprop", 0.15)),
    "holdout": (("adamw", 0.35), ("lion", 0.2), ("nesterov", 0.2), ("sgd", 0.15), ("nadam", 0.1)),
}

FACTOR = {"adamw": 1.0, "adam": 1.0, "nadam": 0.7, "rmsprop": 0.4, "lion": 0.15, "momentum": 15.0, "nesterov": 12.0, "sgd": 40.0}
"""Learning rate of an optimizer over that of Adam."""

SCHEDULES = ("constant", "cosine", "linear", "step", "one-cycle", "wsd", "restarts", "inverse-sqrt")

STYLES = ("plain", "lightning", "hf", "train-prefix", "megatron", "nested", "short")
WRITERS = {
    "plain": ("csv", "jsonl"),
    "lightning": ("csv", "tb"),
    "hf": ("hf",),
    "train-prefix": ("tb", "jsonl"),
    "megatron": ("tb", "csv"),
    "nested": ("jsonl",),
    "short": ("csv", "jsonl"),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run. Steps are optimizer steps; a fault never changes the recipe except where it says so."""

    seed: int
    task: str
    model: str
    optimizer: str
    lr: float
    steps: int
    batch: int
    width: int
    depth: int
    schedule: str
    warmup: int
    floor: float
    clip: float
    beta2: float
    momentum: float
    weight_decay: float
    precision: str
    accumulate: int
    every: int
    style: str
    writer: str
    config: bool
    validate: int
    act: str = "relu"
    norm: bool = True
    dropout: float = 0.0
    samples: int = 0
    shuffle: bool = True
    sorted_data: bool = False
    label_noise: float = 0.0
    target_noise: float = 0.1
    heavy: bool = False
    kl_warmup: int = 0
    mask_mean: bool = True
    fault_size: float = 20.0
    judge_lr: float = 1.0
    """Learning rate of the discriminator over that of the generator."""
    batch_ramp: tuple[int, int] = (0, 0)
    """Step at which the batch is doubled by plan, and the size before it; (0, 0): never."""
    restart_at: int = 0
    """A clean restart of the process: only the clock shows it."""
    extras: tuple[str, ...] = field(default=())
    """What else is logged: batch_id, layers, param_norm, throughput, epoch, samples, time, attn, accuracy."""

    @property
    def adaptive(self) -> bool:
        return self.optimizer in {"adam", "adamw", "nadam", "rmsprop"}


def draw(seed: int, number: int, mix: str, needs: dict[str, object] | None = None) -> Recipe:
    """Recipe ``number`` of a set. ``needs`` fixes fields, or (by ``tasks``, ``models``, ``optimizers``) what they are drawn from."""
    random = np.random.default_rng([seed, number])
    needs = dict(needs or {})
    kinds = _kinds(mix, needs.pop("tasks", None), needs.pop("models", None))
    kind = kinds[int(random.integers(len(kinds)))]
    optimizer = _optimizer(random, mix, kind, needs)
    steps = int(random.integers(*kind.steps))
    schedule = str(random.choice(SCHEDULES)) if kind.task not in {"gan", "q", "policy"} else str(random.choice(("constant", "linear", "cosine")))
    every = int(random.choice((1, 1, 1, 5, 10, 50) if steps >= 1500 else (1, 1, 1, 1, 5, 10)))
    style = str(random.choice(STYLES if kind.task == "language" else [s for s in STYLES if s not in {"megatron", "short"}]))
    fields: dict[str, object] = {
        "seed": int(random.integers(2**31)),
        "task": kind.task,
        "model": kind.model,
        "optimizer": optimizer,
        "lr": kind.adam_lr
        * FACTOR[optimizer]
        * float(random.choice((0.5, 0.7, 1.0)))
        * (0.4 if kind.task == "vae" and optimizer in {"momentum", "nesterov", "sgd"} else 1.0),
        "steps": steps,
        "batch": int(random.choice(kind.batch)),
        "width": int(random.choice(kind.width)),
        "depth": int(random.choice(kind.depth)),
        "schedule": schedule,
        "warmup": int(steps * random.choice((0.03, 0.06, 0.1))) if schedule != "one-cycle" and (kind.task == "language" or random.random() < 0.4) else 0,
        "floor": float(random.choice((0.0, 0.01, 0.1))),
        "clip": float(random.choice((1.0, 1.0, 0.5, 5.0))) if kind.task == "language" or random.random() < 0.4 else 0.0,
        "beta2": float(random.choice((0.95, 0.98, 0.999))),
        "momentum": 0.9,
        "weight_decay": float(random.choice((0.0, 0.01, 0.1))) if optimizer in {"adamw", "lion"} else float(random.choice((0.0, 1e-4))),
        "precision": str(random.choice(("fp32", "fp32", "fp32", "bf16", "fp16"))),
        "accumulate": int(random.choice((1, 1, 1, 2, 4))) if kind.task not in {"gan", "q", "policy"} else 1,
        "every": every,
        "style": style,
        "writer": str(random.choice(WRITERS[style])),
        "config": bool(random.random() < 0.5),
        "validate": int(max(20, steps // int(random.choice((8, 16, 30)))))
        if kind.task not in {"gan", "q", "policy", "contrast"} and random.random() < 0.5
        else 0,
        "act": str(random.choice(("relu", "gelu", "tanh", "silu"))),
        "norm": bool(random.random() < 0.6),
        "dropout": float(random.choice((0.0, 0.0, 0.1, 0.3))),
        "samples": 0,
        "label_noise": float(random.choice((0.0, 0.0, 0.05, 0.2))),
        "target_noise": float(random.choice((0.02, 0.1, 0.5))),
        "kl_warmup": int(steps * 0.3) if random.random() < 0.4 else 0,
        "mask_mean": bool(random.random() < 0.5),
        "extras": tuple(e for e, p in EXTRAS.items() if random.random() < p),
    }
    if kind.model == "resmlp" or kind.task == "contrast":
        fields["act"] = str(random.choice(("gelu", "silu", "relu")))
    fields.update(_oddity(random, kind, steps))
    fields.update(needs)
    return Recipe(**fields)  # type: ignore[arg-type]


def _kinds(mix: str, tasks: object, models: object) -> list[Kind]:
    """Kinds of a mix that a fault can be put into."""
    fit = [k for k in MIXES[mix] if (tasks is None or k.task in tasks) and (models is None or k.model in models)]  # type: ignore[operator]
    return fit or [k for k in MIXES[mix] if tasks is None or k.task in tasks]  # type: ignore[operator]


EXTRAS = {
    "batch_id": 0.35,
    "layers": 0.2,
    "param_norm": 0.25,
    "throughput": 0.5,
    "epoch": 0.3,
    "samples": 0.2,
    "time": 0.35,
    "accuracy": 0.4,
    "attn": 0.1,
    "kl_loss": 0.5,
    "recon_loss": 0.5,
}


def _optimizer(random: np.random.Generator, mix: str, kind: Kind, needs: dict[str, object]) -> str:
    allowed = needs.pop("optimizers", None)
    names = [(n, p) for n, p in OPTIMIZERS[mix] if allowed is None or n in allowed]  # type: ignore[operator]
    if kind.task in {"gan", "q", "policy"} or kind.task == "language":
        names = [(n, p) for n, p in names if n not in {"momentum", "nesterov", "sgd"}] or names
    weights = np.array([p for _, p in names])
    return str(random.choice([n for n, _ in names], p=weights / weights.sum()))


def _oddity(random: np.random.Generator, kind: Kind, steps: int) -> dict[str, object]:
    """Healthy things that look odd."""
    what = str(random.choice(("none", "none", "epochs", "unshuffled", "heavy", "ramp", "restart")))
    epochs = float(random.choice((3, 6, 12)))
    supervised = kind.task in {"images", "language", "regression"}
    if what == "epochs" and supervised:
        return {"samples": max(256, int(steps * 32 / epochs))}
    if what == "unshuffled" and supervised:
        return {"samples": max(256, int(steps * 32 / epochs)), "shuffle": False}
    if what == "heavy" and kind.task == "regression":
        return {"heavy": True}
    if what == "ramp" and kind.task in {"images", "regression", "vae"}:
        return {"batch_ramp": (int(steps * random.uniform(0.2, 0.5)), 0)}
    if what == "restart":
        return {"restart_at": int(steps * random.uniform(0.3, 0.8))}
    return {}
