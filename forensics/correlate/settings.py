"""The training settings that causes ask for, under the names frameworks give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from forensics.vocabulary import normalise

_NAMES: Mapping[str, tuple[str, ...]] = {
    "beta2": ("beta2", "adam_beta2", "betas_1", "optimizer_beta2", "beta_2"),
    "beta1": ("beta1", "adam_beta1", "betas_0", "beta_1"),
    "eps": ("eps", "adam_epsilon", "adam_eps", "epsilon", "optimizer_eps"),
    "clip": ("clip", "max_grad_norm", "clip_grad", "clip_grad_norm", "gradient_clip_val", "grad_clip", "gradient_clipping", "clip_norm", "max_norm"),
    "weight_decay": ("wd", "weight_decay", "decay"),
    "warmup": ("warmup", "warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_steps", "lr_warmup_iters"),
    "warmup_ratio": ("warmup_ratio", "warmup_fraction", "lr_warmup_fraction", "pct_start"),
    "lr": ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr", "max_learning_rate"),
    "min_lr": ("min_lr", "lr_min", "min_learning_rate", "eta_min", "lr_end", "min_lr_ratio"),
    "dataset": ("dataset_size", "num_train_examples", "num_examples", "train_size", "n_train", "train_dataset_size", "num_train_samples"),
    "momentum": ("momentum",),
    "accumulation": ("accum", "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum"),
    "batch": ("batch", "batch_size", "train_batch_size", "per_device_train_batch_size", "global_batch_size", "bs", "micro_batch_size"),
    "processes": ("world_size", "num_processes", "n_gpus", "num_gpus", "num_devices"),
    "vocab": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "width": ("hidden_size", "d_model", "n_embd", "embed_dim", "model_dim"),
    "parameters": ("n_params", "num_params", "total_params", "num_parameters", "n_parameters", "total_parameters"),
    "longest": ("max_completion_length", "max_new_tokens", "max_response_length", "response_length"),
    "init_std": ("init_std", "init_method_std", "initializer_range"),
    "total_steps": ("steps", "max_steps", "total_steps", "train_iters", "max_iters", "num_training_steps"),
}

KNOWN = frozenset(alias for aliases in _NAMES.values() for alias in aliases) | {"seed", "dtype", "precision", "fp16", "bf16"}
"""Names of settings that causes ask for, normalised."""

_OPTIMIZERS = ("opt", "optim", "optimizer", "optimizer_type", "optimizer_name", "optim_name", "optimizer_class", "optimizer_target")

_ADAM_LIKE = ("adam", "lamb", "adafactor", "adagrad", "rmsprop", "novograd", "shampoo", "soap")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings as logged; None = not logged. ``adaptive`` says whether the optimizer keeps second moments."""

    beta1: float | None = None
    beta2: float | None = None
    eps: float | None = None
    clip: float | None = None
    clip_logged: bool = False
    weight_decay: float | None = None
    warmup: float | None = None
    warmup_ratio: float | None = None
    lr: float | None = None
    min_lr: float | None = None
    momentum: float | None = None
    dataset: float | None = None
    accumulation: float | None = None
    batch: float | None = None
    total_steps: float | None = None
    processes: float | None = None
    vocab: float | None = None
    width: float | None = None
    parameters: float | None = None
    longest: float | None = None
    init_std: float | None = None
    optimizer: str | None = None
    adaptive: bool | None = None
    half_precision: bool | None = None


def read_settings(config: Mapping[str, object]) -> Settings:
    """Pick the settings out of a flat configuration (keys as logged, ``a.b.c``)."""
    plain: dict[str, object] = {normalise(str(key)): value for key, value in config.items()}
    for key, value in config.items():
        name = normalise(str(key))
        plain.setdefault(normalise(str(key).rsplit(".", 1)[-1]), value)
        if isinstance(value, (list, tuple)) and len(value) == 2 and name.endswith("betas"):
            plain.setdefault("beta1", value[0])
            plain.setdefault("beta2", value[1])
    numbers = {name: _number(plain, aliases) for name, aliases in _NAMES.items()}
    clip_logged = any(alias in plain for alias in _NAMES["clip"])
    optimizer = next((str(plain[a]).lower() for a in _OPTIMIZERS if isinstance(plain.get(a), str)), None)
    adaptive = None if optimizer is None else any(word in optimizer for word in _ADAM_LIKE)
    if adaptive is None and numbers["beta2"] is not None:
        adaptive = True
    return Settings(
        **numbers,
        clip_logged=clip_logged,
        optimizer=optimizer,
        adaptive=adaptive,
        half_precision=_half_precision(plain),
    )


def _half_precision(plain: Mapping[str, object]) -> bool | None:
    flag = plain.get("fp16")
    if isinstance(flag, bool):
        return flag
    named = plain.get("dtype", plain.get("precision"))
    return None if named is None else str(named).lower() in {"fp16", "float16", "16", "16-mixed"}


def _number(plain: Mapping[str, object], aliases: tuple[str, ...]) -> float | None:
    """The first of the names with a finite number; a configuration may hold anything."""
    for alias in aliases:
        value = plain.get(alias)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            continue
        try:
            number = float(value)
        except (ValueError, OverflowError):
            continue
        if math.isfinite(number):
            return number
    return None


def logged_setting(config: Mapping[str, object], setting: str) -> tuple[str | None, object]:
    """The key and value under which a setting stands in a configuration; (None, None) where it does not."""
    aliases = _NAMES.get(setting, _OPTIMIZERS if setting == "optimizer" else (setting,))
    for alias in aliases:
        for key, value in config.items():
            if alias in {normalise(str(key)), normalise(str(key).rsplit(".", 1)[-1])}:
                return str(key), value
    return None, None
