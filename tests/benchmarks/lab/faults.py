"""Faults: what is done to a run, at which step, and which causes are right answers.

``accept`` holds what an expert with only the log would have to accept: the cause itself, and causes of the catalogue that mean
the same or leave the same trace. A fault that changes how the run is set up from its first step has a healthy ``twin``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from tests.benchmarks.lab.recipes import Recipe

if TYPE_CHECKING:
    from tests.benchmarks.lab.tasks import Batch
    from tests.benchmarks.lab.train import Trainer

SUPERVISED = {"tasks": ("images", "language", "regression")}
ADAPTIVE = {"optimizers": ("adam", "adamw", "nadam")}
BAD = ("bad_batch_outlier", "label_noise_or_shuffle", "repeated_ngram_docs", "input_scale_mismatch")
SHIFT = ("mixture_shift", "degenerate_data_pocket", "data_order_correlated")
HIGH = ("lr_too_high", "lr_peak_instability", "grad_clip_missing", "sharpness_edge")


@dataclass(frozen=True, slots=True)
class Spec:
    """A kind of fault. ``reach``: the labelled onset is at most so many steps late. ``needs``: see recipes.draw.

    ``where``: share of the run in which it begins; None: it is there from the first step.
    """

    kind: str
    event: str
    injected: str
    accept: tuple[str, ...]
    reach: int
    needs: dict[str, object] = field(default_factory=dict)
    where: tuple[float, float] | None = (0.35, 0.85)
    twin: Callable[[Recipe], Recipe] | None = None


SPECS = (
    Spec("bad_batch", "spike", "bad_data_batch", BAD, 3, SUPERVISED),
    Spec(
        "recurring_batch",
        "spike",
        "bad_batch_every_epoch",
        BAD,
        3,
        {**SUPERVISED, "shuffle": False, "samples": 1600, "batch": 16, "batch_ramp": (0, 0), "accumulate": 1},
        (0.1, 0.12),
    ),
    Spec("nan_batch", "nan", "non_finite_data", ("nan_in_input", "numeric_domain_error", "loss_mask_error"), 1, SUPERVISED),
    Spec("lr_spike", "spike", "learning_rate_spike", ("lr_rewarm_or_jump",), 12),
    Spec("lr_jump", "divergence_or_shift", "learning_rate_jump", ("lr_rewarm_or_jump", "lr_too_high"), 25),
    Spec(
        "lr_too_high",
        "divergence_or_spikes",
        "learning_rate_too_high",
        HIGH,
        0,
        {"schedule": "constant", "tasks": ("images", "language", "regression", "vae")},
        None,
        lambda r: replace(r, lr=r.lr / r.fault_size),
    ),
    Spec(
        "no_clip",
        "divergence_or_spikes",
        "missing_clipping",
        ("grad_clip_missing", "gradient_explosion_depth", *HIGH[:2]),
        0,
        {"models": ("gru", "lstm", "resmlp", "mlp"), "tasks": ("language", "regression", "images"), "clip": 0.0, "optimizers": ("momentum", "nesterov", "sgd")},
        None,
        lambda r: replace(r, lr=r.lr / 6, clip=0.5),
    ),
    Spec(
        "no_warmup",
        "early_spike",
        "missing_warmup",
        ("lr_warmup_missing",),
        0,
        {"tasks": ("language",), "models": ("pre", "post"), "optimizers": ("adam", "adamw"), "warmup": 0, "schedule": "cosine", "beta2": 0.999},
        None,
        lambda r: replace(r, warmup=r.steps // 10),
    ),
    Spec(
        "resume_no_optimizer",
        "spike",
        "optimizer_state_lost",
        ("resume_optimizer_lost",),
        15,
        {"optimizers": ("adam", "adamw", "nadam", "momentum", "nesterov", "lion")},
    ),
    Spec("resume_rewarm", "spike_or_shift", "learning_rate_rewarm", ("lr_rewarm_or_jump", "resume_scheduler_lost"), 80),
    Spec("data_repeat", "level_shift_down", "data_repeated_after_resume", ("data_repeat_after_resume",), 40, {**SUPERVISED, "samples": 0}, (0.45, 0.7)),
    Spec("data_shift", "level_shift", "data_distribution_shift", SHIFT, 10, {"tasks": ("images", "language", "regression", "vae", "q")}),
    Spec(
        "input_scale",
        "level_shift",
        "input_scale_changed",
        ("input_scale_mismatch", "mixture_shift", "degenerate_data_pocket"),
        10,
        {"tasks": ("images", "regression", "vae", "contrast")},
    ),
    Spec("data_pocket", "level_shift", "pocket_of_other_data", (*SHIFT, "label_noise_or_shuffle"), 10, SUPERVISED),
    Spec("label_noise", "level_shift", "labels_partly_shuffled", ("label_noise_or_shuffle", "mixture_shift", "degenerate_data_pocket"), 10, SUPERVISED),
    Spec("mask_bug", "level_shift", "loss_mask_change", ("loss_mask_error", "packing_imbalance", "batch_size_change_unscaled"), 10, SUPERVISED),
    Spec("grad_bug", "spike", "gradient_explosion", ("grad_clip_missing", "gradient_explosion_depth", "grad_reduction_scale", "sdc_transient"), 4),
    Spec("fp16_overflow", "loss_scale_collapse", "fp16_overflow", ("fp16_grad_overflow", "loss_scale_collapse"), 25, {"precision": "fp16"}),
    Spec("scaler_reset", "loss_scale_drop", "loss_scale_reset_on_resume", ("resume_scaler_reset", "fp16_grad_overflow"), 25, {"precision": "fp16"}),
    Spec("bit_flip", "spike_or_shift", "silent_data_corruption", ("sdc_transient", "resume_weights_wrong"), 3),
    Spec("weight_noise", "spike", "checkpoint_corrupted_on_resume", ("resume_weights_wrong", "sdc_transient"), 3),
    Spec("stale_v", "spike", "adam_second_moment_stale", ("adam_v_stale", "momentum_contamination"), 5, {**ADAPTIVE, "beta2": 0.999}),
    Spec("decay", "level_shift", "weight_decay_misapplied", ("weight_decay_misapplied", "config_edit"), 60),
    Spec(
        "batch_drop",
        "noise_increase",
        "batch_size_change",
        ("batch_size_change_unscaled", "batch_noise_small"),
        60,
        {"tasks": ("images", "language", "regression", "vae"), "batch": 32},
    ),
    Spec(
        "frozen",
        "plateau",
        "optimizer_not_stepping",
        ("optimizer_not_stepping",),
        60,
        {"tasks": ("images", "language", "regression", "vae", "contrast")},
        (0.02, 0.08),
    ),
    Spec(
        "undivided",
        "level_shift",
        "accumulation_not_divided",
        ("grad_accum_normalisation", "grad_reduction_scale", "metric_artifact"),
        10,
        {**SUPERVISED, "accumulate": 4},
    ),
    Spec(
        "divided_twice",
        "level_shift_down",
        "loss_divided_twice",
        ("grad_accum_normalisation", "grad_reduction_scale", "metric_artifact"),
        10,
        {**SUPERVISED, "accumulate": 4},
    ),
    Spec(
        "dead_units",
        "plateau",
        "dead_units",
        ("vanishing_or_dead_units", "sdc_transient", "resume_weights_wrong"),
        5,
        {"tasks": ("images", "regression"), "act": "relu"},
    ),
    Spec(
        "overfitting",
        "overfitting",
        "overfitting",
        ("overfitting",),
        0,
        {"tasks": ("images",), "samples": 192, "batch": 16, "label_noise": 0.2, "dropout": 0.0, "schedule": "constant", "batch_ramp": (0, 0)},
        None,
        lambda r: replace(r, samples=0),
    ),
    Spec("lr_zero", "plateau", "learning_rate_zero", ("lr_too_low_or_zero",), 60, {}, (0.2, 0.6)),
    Spec(
        "miscounted",
        "plateau",
        "schedule_too_fast",
        ("lr_schedule_miscounted", "lr_too_low_or_zero"),
        60,
        {"schedule": "linear", "floor": 0.0, "config": True, "warmup": 0},
        (0.25, 0.26),
    ),
    Spec("eval_mode", "level_shift_down", "evaluation_mode_left_on", ("train_eval_mode_error",), 10, {**SUPERVISED, "dropout": 0.4}),
    Spec(
        "attn_logits",
        "instability",
        "attention_logit_growth",
        ("attention_logit_growth",),
        250,
        {"tasks": ("language",), "models": ("pre", "post"), "extras": ("attn", "throughput")},
    ),
    Spec("gan_imbalance", "divergence_or_shift", "discriminator_too_strong", ("gan_imbalance",), 150, {"tasks": ("gan",)}),
    Spec("log_rewound", "restart", "steps_logged_twice", ("metric_artifact",), 60),
)
BY_KIND = {spec.kind: spec for spec in SPECS}


@dataclass(slots=True)
class Fault:
    """One fault of one run: ``n`` steps from ``step`` on, ``x`` its size, ``mode`` its variant; ``quiet``: no pause marks a resume."""

    spec: Spec
    step: int
    n: int
    x: float
    mode: str
    quiet: bool
    seed: int

    @property
    def kind(self) -> str:
        return self.spec.kind

    def on(self, step: int) -> bool:
        """Inside a fault that lasts ``n`` steps."""
        return self.step <= step < self.step + self.n

    def pause(self, step: int) -> bool:
        """A resume that the clock shows."""
        return step == self.step and not self.quiet and (self.kind.startswith("resume") or self.kind in {"data_repeat", "weight_noise", "scaler_reset"})

    def clock(self, step: int) -> int:
        """Step that the schedule believes in."""
        return 4 * step if self.kind == "miscounted" else step

    def rate(self, trainer: Trainer, step: int, lr: float) -> float:
        peak = trainer.r.lr
        match self.kind:
            case "lr_spike" if self.on(step):
                return lr * self.x
            case "lr_jump" if step >= self.step:
                return lr * self.x
            case "resume_rewarm" if step >= self.step:
                since = step - self.step
                return self.x * peak * min(1.0, (since + 1) / 20) * max(0.1, 1 - since / max(1, trainer.r.steps - self.step))
            case "lr_zero" if step >= self.step:
                return 0.0
            case "miscounted" if step >= trainer.r.steps / 4:
                return 0.0
        return lr

    def size(self, step: int, size: int) -> int:
        return max(1, int(self.x)) if self.kind == "batch_drop" and step >= self.step else size

    def position(self, step: int) -> int:
        """Where in the data a step reads."""
        return step - self.step if self.kind == "data_repeat" and step >= self.step else step

    def divide(self, step: int, parts: int) -> float:
        if step >= self.step and self.kind in {"undivided", "divided_twice"}:
            return 1.0 if self.kind == "undivided" else float(parts * parts)
        return parts

    def batch(self, trainer: Trainer, step: int, batch: Batch, index: int) -> Batch:
        task, random = trainer.task, torch.Generator().manual_seed(self.seed + step)
        size = len(batch[0])
        match self.kind:
            case "bad_batch" if self.on(step):
                return task.corrupt(batch, self.mode, random)
            case "recurring_batch" if index % task.batches_per_epoch == self.n and step >= self.step:
                return task.corrupt(batch, self.mode, torch.Generator().manual_seed(self.seed))
            case "nan_batch" if self.on(step):
                return task.corrupt(batch, "nan", random)
            case "data_shift" if step >= self.step:
                return task.batch(index, size, shifted=True)
            case "data_pocket" if self.on(step):
                return task.batch(index, size, shifted=True) if self.mode == "noise" else task.corrupt(batch, "labels", random)
            case "input_scale" if step >= self.step:
                return [batch[0] * self.x, *batch[1:]]
            case "label_noise" if step >= self.step:
                wrong = task.corrupt(batch, "labels", random)
                hit = torch.rand(size, generator=random) < self.x
                return [batch[0], *(torch.where(hit.view(-1, *[1] * (a.ndim - 1)), b, a) for a, b in zip(batch[1:], wrong[1:], strict=True))]
            case "mask_bug" if step >= self.step:
                shape = batch[1].shape if trainer.r.task == "language" else batch[1].shape[:1]
                return [*batch[:2], (torch.rand(shape, generator=random) >= self.x).float()]
        return batch

    def at_gradient(self, trainer: Trainer, step: int) -> None:
        if self.kind in {"grad_bug", "fp16_overflow"} and self.on(step):
            for p in trainer.model.parameters():
                if p.grad is not None:
                    p.grad.mul_(self.x)

    def at_step(self, trainer: Trainer, step: int) -> None:
        """Damage to weights and states before a step."""
        if self.kind == "decay" and step >= self.step:
            with torch.no_grad():
                for p in trainer.model.parameters():
                    p.mul_(1 - self.x)
        if self.kind == "attn_logits" and self.on(step):
            with torch.no_grad():
                for block in trainer.model.blocks:  # type: ignore[union-attr]
                    block.qkv.weight[: 2 * block.qkv.in_features].mul_(self.x)
        if step == self.step and self.kind in _ONCE:
            with torch.no_grad():
                _ONCE[self.kind](trainer, self)
        if self.kind == "gan_imbalance" and step == self.step:
            trainer.optimizer.param_groups[1]["scale"] *= self.x


def _lose_state(trainer: Trainer, fault: Fault) -> None:
    trainer.optimizer.state.clear()


def _flip(trainer: Trainer, fault: Fault) -> None:
    weights = [p for p in trainer.model.parameters() if p.ndim > 1]
    target = weights[fault.seed % len(weights)].view(-1)
    target[fault.seed % len(target)] = fault.x


def _shake(trainer: Trainer, fault: Fault) -> None:
    random = torch.Generator().manual_seed(fault.seed)
    for p in trainer.model.parameters():
        if p.ndim > 1:
            p.add_(torch.randn(p.shape, generator=random) * fault.x * p.std())


def _shrink_v(trainer: Trainer, fault: Fault) -> None:
    for s in trainer.optimizer.state.values():
        if "exp_avg_sq" in s:
            s["exp_avg_sq"].mul_(fault.x)


def _freeze(trainer: Trainer, fault: Fault) -> None:
    trainer.frozen = True


def _rescale(trainer: Trainer, fault: Fault) -> None:
    trainer.scale = 2.0**30


def _kill(trainer: Trainer, fault: Fault) -> None:
    for name, p in trainer.model.named_parameters():
        if p.ndim == 1 and not name.startswith(list(dict(trainer.model.named_children()))[-1]):
            p.fill_(-fault.x)


def _evaluate(trainer: Trainer, fault: Fault) -> None:
    trainer.model.eval()
    trainer.model.train = lambda *_: trainer.model  # type: ignore[method-assign]


_ONCE: dict[str, Callable[[Trainer, Fault], None]] = {
    "resume_no_optimizer": _lose_state,
    "bit_flip": _flip,
    "weight_noise": _shake,
    "stale_v": _shrink_v,
    "frozen": _freeze,
    "scaler_reset": _rescale,
    "dead_units": _kill,
    "eval_mode": _evaluate,
}


SIZES: dict[str, tuple[tuple[float, float], ...]] = {
    # kind: (steps it lasts, size) of its variants
    "bad_batch": ((1, 1), (1, 1), (2, 1), (3, 1)),
    "lr_spike": ((1, 60), (4, 30), (10, 15)),
    "lr_jump": ((1, 6), (1, 12), (1, 25)),
    "resume_rewarm": ((1, 2), (1, 4), (1, 8)),
    "input_scale": ((1, 0.2), (1, 3), (1, 6)),
    "data_pocket": ((25, 1), (40, 1), (70, 1)),
    "label_noise": ((1, 0.3), (1, 0.5), (1, 0.8)),
    "mask_bug": ((1, 0.8), (1, 0.9), (1, 0.95)),
    "grad_bug": ((1, 3000), (2, 100), (4, 300), (2, 3000)),
    "fp16_overflow": ((5, 1e7), (10, 1e7), (20, 1e7)),
    "bit_flip": ((1, 30), (1, 300), (1, 3000), (1, -100)),
    "weight_noise": ((1, 0.3), (1, 0.6), (1, 1)),
    "stale_v": ((1, 1e-6), (1, 1e-5), (1, 1e-4)),
    "decay": ((1, 0.003), (1, 0.01), (1, 0.03)),
    "batch_drop": ((1, 1), (1, 2), (1, 4)),
    "dead_units": ((1, 3), (1, 10)),
    "attn_logits": ((200, 1.01), (200, 1.015), (200, 1.02)),
    "gan_imbalance": ((1, 10), (1, 30)),
    "log_rewound": ((30, 1), (60, 1), (120, 1)),
    "recurring_batch": ((10, 1), (40, 1), (80, 1)),
}


def make_fault(spec: Spec, recipe: Recipe, random: np.random.Generator) -> Fault:
    """Draw step, size and variant of a fault. It begins at a logged step, or a short one would not be seen at all."""
    low, high = spec.where or (0.0, 0.0)
    step = int(recipe.steps * random.uniform(low, high))
    variants = SIZES.get(spec.kind, ((1, 1),))
    n, x = variants[int(random.integers(len(variants)))]
    step = recipe.steps // 4 if spec.kind == "miscounted" else step - step % recipe.every
    modes = ("noise", "labels") if spec.kind == "data_pocket" else ("noise", "scale") if recipe.task == "vae" else ("noise", "labels", "scale")
    return Fault(spec, step, int(n), float(x), str(random.choice(modes)), bool(random.random() < 0.5), int(random.integers(2**31)))
