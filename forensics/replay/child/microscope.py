"""One training step under the microscope: every module, every tensor, and where the first non-finite value came from."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from forensics.replay.child.change import FAITHFUL, Attention, Lift
from forensics.replay.child.session import Session, Snapshot

MOST_MODULES = 400
"""Modules that are listed; deeper ones are left out first."""


@dataclass(slots=True)
class FirstBad:
    """Where the first non-finite value appeared: in which pass, which operation, in which number format, inside which module."""

    where: str
    operation: str
    dtype: str
    module: str | None = None


@dataclass(slots=True)
class Slide:
    """What one step looked like from inside. Values are of the step's own batch, before its update unless said."""

    step: int
    loss: float
    layers: list[dict[str, Any]] = field(default_factory=list)
    modules: list[dict[str, Any]] = field(default_factory=list)
    attention: list[dict[str, Any]] = field(default_factory=list)
    first_bad: FirstBad | None = None
    halves: list[str] = field(default_factory=list)


class _FirstBadOperation(TorchDispatchMode):
    """The first operation with finite inputs and a non-finite output.

    Masks are written as -inf on purpose, so minus infinity alone is let through.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: tuple[str, str] | None = None
        self.halves: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in _flat(out):
            if value.dtype in (torch.float16, torch.bfloat16):
                self.halves.add(str(value.dtype).removeprefix("torch."))
            if self.found is None and _bad(value) and not any(_bad(a) for a in _flat(args)):
                name = str(func).removeprefix("aten.").split(".")[0]
                if not name.startswith(("empty", "new_empty", "_to_copy", "detach", "t")) or name == "_to_copy":
                    self.found = (name, str(value.dtype).removeprefix("torch."))
        return out


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _flat(v)


def _bad(value: Any) -> bool:
    """NaN, or plus infinity. One sum tells that nothing is amiss; only where it is not finite every element is asked."""
    total = float(value.detach().sum(dtype=torch.float64 if value.dtype is torch.float64 else torch.float32))
    return not math.isfinite(total) and bool(torch.isnan(value).any() or torch.isposinf(value).any())


def look(session: Session, before: Snapshot) -> Slide:
    """Take the step after a snapshot with every instrument on. The session's state is the one after the step."""
    session.put(before)
    session.optimizer.zero_grad(set_to_none=True)
    session._set_lr(before.step, FAITHFUL)
    batch = session.batch(before.step)
    watch, lift, first = Attention(watch=True), Lift(change=False), _FirstBadOperation()
    forward, outputs = _Forward(session.model), _Gradients(session.model)
    with forward, outputs, watch, lift, first:
        loss = session.loss(batch)
    in_forward = first.found
    where_forward = forward.first_bad
    with first:
        loss.backward()
    slide = Slide(before.step, float(loss.detach()), modules=forward.rows[:MOST_MODULES], halves=sorted(lift.seen | first.halves))
    if in_forward is not None and (where_forward is not None or not math.isfinite(slide.loss)):
        slide.first_bad = FirstBad("forward", *in_forward, module=where_forward)
    else:
        origin = outputs.origin()
        bad_parameter = next((n for n, p in session.model.named_parameters() if p.grad is not None and not torch.isfinite(p.grad).all()), None)
        if origin is not None or bad_parameter is not None:
            operation = first.found or ("backward", "unknown")
            slide.first_bad = FirstBad("backward", *operation, module=origin or (bad_parameter or "").rpartition(".")[0])
    slide.attention = [{"call": i, "largest_logit": max(heads), "heads": heads, "entropy": watch.entropy[i]} for i, heads in enumerate(watch.logits)]
    gradients = {n: p.grad.detach().float() for n, p in session.model.named_parameters() if p.grad is not None}
    old = {n: p.detach().clone() for n, p in session.model.named_parameters()}
    session._clip(FAITHFUL)
    session.optimizer.step()
    for name, parameter in session.model.named_parameters():
        gradient = gradients.get(name)
        moved = (parameter.detach() - old[name]).float()
        slide.layers.append(
            {
                "tensor": name,
                "grad_norm": float(gradient.norm()) if gradient is not None else None,
                "grad_rms": _rms(gradient) if gradient is not None else None,
                "update_rms": _rms(moved),
                "weight_rms": _rms(old[name].float()),
            }
        )
    return slide


def _rms(x: Any) -> float:
    return float(x.pow(2).mean().sqrt()) if x.numel() else 0.0


class _Forward(contextlib.AbstractContextManager["_Forward"]):
    """Largest value and kurtosis of what every module gives out, and the innermost module that first gave a non-finite value."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows: list[dict[str, Any]] = []
        self.first_bad: str | None = None
        self.handles: list[Any] = []

    def __enter__(self) -> _Forward:
        for name, module in self.model.named_modules():
            if name:
                self.handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def hook(module: Any, args: Any, out: Any) -> None:  # noqa: ARG001 - the shape of a hook
            for value in _flat(out):
                x = value.detach().float()
                finite = bool(torch.isfinite(x).all())
                if not finite and self.first_bad is None and all(bool(torch.isfinite(a).all()) for a in _flat(args)):
                    self.first_bad = name
                row = {"module": name, "max_abs": float(x.abs().max()) if x.numel() else 0.0, "finite": finite}
                if finite and x.numel() > 1:
                    centred = x - x.mean()
                    spread = float(centred.pow(2).mean())
                    row["kurtosis"] = float(centred.pow(4).mean()) / spread**2 if spread > 0 else 0.0
                self.rows.append(row)
                break

        return hook


class _Gradients(contextlib.AbstractContextManager["_Gradients"]):
    """Whether the gradients of every module's output and inputs are finite."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.out: dict[str, bool] = {}
        self.into: dict[str, bool] = {}
        self.handles: list[Any] = []

    def __enter__(self) -> _Gradients:
        for name, module in self.model.named_modules():
            if name:
                self.handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def note(table: dict[str, bool]) -> Any:
            def hook(gradient: Any) -> None:
                table[name] = table.get(name, True) and bool(torch.isfinite(gradient).all())

            return hook

        def forward(module: Any, args: Any, out: Any) -> None:  # noqa: ARG001 - the shape of a hook
            for values, table in ((out, self.out), (args, self.into)):
                for value in _flat(values if isinstance(values, (list, tuple)) else (values,)):
                    if value.requires_grad:
                        value.register_hook(note(table))

        return forward

    def origin(self) -> str | None:
        """The innermost module that was handed a finite gradient and handed on one that is not."""
        guilty = [n for n, fine in self.into.items() if not fine and self.out.get(n, False)]
        parameters = {n for n in self.out if self.out[n]}
        if not guilty:
            return next((n for n in sorted(parameters, key=lambda n: -n.count(".")) if self._own_gradient_bad(n)), None)
        return max(guilty, key=lambda n: n.count("."))

    def _own_gradient_bad(self, name: str) -> bool:
        module = self.model.get_submodule(name)
        return any(p.grad is not None and not bool(torch.isfinite(p.grad).all()) for p in module.parameters(recurse=False))


def gradient_norm(session: Session, batch: Any) -> float:
    """Global gradient norm of a batch, without a step."""
    session.optimizer.zero_grad(set_to_none=True)
    session.loss(batch).backward()
    grads = [p.grad.detach().float().norm() for p in session.model.parameters() if p.grad is not None]
    session.optimizer.zero_grad(set_to_none=True)
    return float(torch.stack(grads).norm()) if grads else math.nan
