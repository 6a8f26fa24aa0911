"""R15: the sharpest direction of the loss before the event, by power iteration, against what the step size can bear."""

from __future__ import annotations

import math
from typing import Any

import torch

from forensics.replay.child.bench import Bench
from forensics.replay.wire import Outcome

ID, WHAT = "R15", "curvature by power iteration"

ROUNDS = 12

REACH = 1e-3
"""Length of the finite difference, as a share of the weights' norm."""


def run(bench: Bench) -> Outcome:
    """Largest eigenvalue of the Hessian (preconditioned for Adam) of the batch before the event, and the bound of the optimizer."""
    session = bench.session
    before = bench.before()
    session.put(before)
    session.optimizer.zero_grad(set_to_none=True)
    batch = session.batch(before.step)
    weights = [p for p in session.model.parameters() if p.requires_grad]
    group = session.optimizer.param_groups[0]
    lr = session.lr_at(bench.target.onset) or float(group["lr"])
    betas = group.get("betas")
    scale = [_preconditioner(session.optimizer, p, group) for p in weights]
    top = _power(session, batch, weights, scale)
    if not math.isfinite(top) or lr <= 0:
        return Outcome(ID, WHAT, {}, "could not be measured: the gradient is not finite around this state")
    beta1 = float(betas[0]) if betas else float(group.get("momentum", 0.0))
    bound = (2 + 2 * beta1) / (((1 - beta1) if betas else 1.0) * lr)
    kind = "preconditioned " if betas else ""
    place = "beyond" if top > bound else "below"
    text = f"largest {kind}curvature {top:.3g}, {place} the bound {bound:.3g} that a learning rate of {lr:.3g} can bear"
    return Outcome(ID, WHAT, {"curvature": top, "bound": bound, "lr": lr, "preconditioned": bool(betas)}, text, None)


def _preconditioner(optimizer: Any, parameter: Any, group: Any) -> Any:
    state = optimizer.state.get(parameter, {})
    variance = state.get("exp_avg_sq")
    if variance is None or variance.shape != parameter.shape:
        return None
    taken = float(state.get("step", 1)) or 1.0
    corrected = variance / (1 - group["betas"][1] ** taken)
    return 1.0 / (corrected.sqrt() + group.get("eps", 1e-8)).sqrt()


def _power(session: Any, batch: Any, weights: list[Any], scale: list[Any]) -> float:
    generator = torch.Generator().manual_seed(0)
    v = [torch.randn(w.shape, generator=generator).to(w.device, w.dtype) for w in weights]
    size = math.sqrt(sum(float(w.detach().float().norm()) ** 2 for w in weights)) or 1.0
    top = math.nan
    for _ in range(ROUNDS):
        norm = math.sqrt(sum(float(x.norm()) ** 2 for x in v))
        if not norm > 0 or not math.isfinite(norm):
            return math.nan
        v = [x / norm for x in v]
        direction = [x if s is None else x * s for x, s in zip(v, scale, strict=True)]
        length = math.sqrt(sum(float(x.norm()) ** 2 for x in direction)) or 1.0
        reach = REACH * size / length
        plus, minus = (_gradient(session, batch, weights, direction, sign * reach) for sign in (1.0, -1.0))
        product = [(a - b) / (2 * reach) for a, b in zip(plus, minus, strict=True)]
        product = [x if s is None else x * s for x, s in zip(product, scale, strict=True)]
        top = sum(float((a * b).sum()) for a, b in zip(product, v, strict=True))
        v = product
    return top


def _gradient(session: Any, batch: Any, weights: list[Any], direction: list[Any], reach: float) -> list[Any]:
    kept = [w.detach().clone() for w in weights]
    with torch.no_grad():
        for w, d in zip(weights, direction, strict=True):
            w.add_(d, alpha=reach)
    gradients = torch.autograd.grad(session.loss(batch), weights, allow_unused=True)
    with torch.no_grad():
        for w, old in zip(weights, kept, strict=True):
            w.copy_(old)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(weights, gradients, strict=True)]
