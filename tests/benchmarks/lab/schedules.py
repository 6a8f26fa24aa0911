"""Learning-rate schedules as factors of the peak, and optimizers that PyTorch has not."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from tests.benchmarks.lab.recipes import Recipe


def factor(r: Recipe, step: int) -> float:
    """Share of the peak learning rate at a step."""
    if step < r.warmup and r.schedule != "one-cycle":
        return (step + 1) / r.warmup
    t = (step - r.warmup) / max(1, r.steps - r.warmup)
    shape = _SHAPES[r.schedule]
    return shape(t) if r.schedule in {"one-cycle", "inverse-sqrt"} else max(r.floor, shape(t))


def _one_cycle(t: float) -> float:
    return 0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * t / 0.3)) if t < 0.3 else 0.5 * (1 + math.cos(math.pi * (t - 0.3) / 0.7))


_SHAPES = {
    "constant": lambda _: 1.0,
    "cosine": lambda t: 0.5 * (1 + math.cos(math.pi * t)),
    "linear": lambda t: 1 - t,
    "step": lambda t: 1.0 if t < 0.5 else 0.1 if t < 0.8 else 0.01,
    "one-cycle": _one_cycle,
    "wsd": lambda t: 1.0 if t < 0.75 else 1 - (t - 0.75) / 0.25,
    "restarts": lambda t: 0.5 * (1 + math.cos(math.pi * (t * 3 % 1))),
    "inverse-sqrt": lambda t: 1 / math.sqrt(1 + 9 * t),
}


class Lion(torch.optim.Optimizer):
    """Sign of an interpolation of gradient and momentum."""

    def __init__(self, parameters: Iterable[object], lr: float, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})  # type: ignore[arg-type]

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]  # noqa: ARG002
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((first * m + (1 - first) * p.grad).sign_(), alpha=-group["lr"])
                m.mul_(second).add_(p.grad, alpha=1 - second)


def make_optimizer(r: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimizer; a GAN's discriminator has a group of its own."""
    if hasattr(model, "discriminator"):
        groups = [{"params": list(model.generator.parameters()), "scale": 1.0}, {"params": list(model.discriminator.parameters()), "scale": r.judge_lr}]
    else:
        groups = [{"params": list(model.parameters()), "scale": 1.0}]
    decay = r.weight_decay
    match r.optimizer:
        case "adam":
            return torch.optim.Adam(groups, lr=r.lr, betas=(0.9, r.beta2), weight_decay=decay)
        case "adamw":
            return torch.optim.AdamW(groups, lr=r.lr, betas=(0.9, r.beta2), weight_decay=decay)
        case "nadam":
            return torch.optim.NAdam(groups, lr=r.lr, betas=(0.9, r.beta2))
        case "rmsprop":
            return torch.optim.RMSprop(groups, lr=r.lr, alpha=0.99, momentum=0.0)
        case "lion":
            return Lion(groups, lr=r.lr, weight_decay=decay)
        case "sgd":
            return torch.optim.SGD(groups, lr=r.lr, weight_decay=decay)
        case _:
            return torch.optim.SGD(groups, lr=r.lr, momentum=r.momentum, nesterov=r.optimizer == "nesterov", weight_decay=decay)
