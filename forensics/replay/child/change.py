"""What a replay changes: one condition, applied around every step of a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

HALVES = (torch.float16, torch.bfloat16)

NORMALISING = ("softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "batch_norm", "exp", "logsumexp")
"""Operations whose inputs are lifted when only norms and softmax are."""

ATTENTION = ("attn", "attention")
"""Parts of the names of modules that hold attention."""


@dataclass(frozen=True, slots=True)
class Change:
    """One condition. Everything is off by default: the faithful replay.

    ``lr`` multiplies every learning rate; ``clip`` replaces the clip value (0: none, "tensor": each tensor by itself at the
    usual value); ``lift`` is all, attention or norms; ``batches`` maps a step to the step whose batch it gets; ``lr_steps`` maps
    a step to the step whose learning rate it gets; ``optimizer`` is one of fresh, no_momentum, no_variance, beta2, eps_large,
    eps_small, sgd; ``loss_scale`` fixes the scale of the loss; ``softcap`` caps attention logits; ``qk_norm`` normalises
    queries and keys; ``frozen`` are prefixes of parameters that stay; ``calm`` turns dropout off; ``mixed`` shuffles the
    samples among the batches of these steps.
    """

    lr: float = 1.0
    clip: float | str | None = None
    lift: str | None = None
    batches: Mapping[int, int] = field(default_factory=dict)
    lr_steps: Mapping[int, int] = field(default_factory=dict)
    optimizer: str | None = None
    loss_scale: float | None = None
    softcap: float | None = None
    qk_norm: bool = False
    frozen: tuple[str, ...] = ()
    calm: bool = False
    mixed: tuple[int, ...] = ()


FAITHFUL = Change()


class Lift(TorchFunctionMode):
    """Compute in float32 what asks for float16 or bfloat16; ``seen`` collects the half types that were asked for."""

    def __init__(self, only: str | None = None, *, change: bool = True) -> None:
        super().__init__()
        self.only, self.change = only, change
        self.on = only != "attention"
        self.seen: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        asked = _halves(args, kwargs, name)
        self.seen |= asked
        if not (self.change and self.on):
            return func(*args, **kwargs)
        if self.only == "norms":
            if name not in NORMALISING:
                return func(*args, **kwargs)
            return func(*(_up(a) for a in args), **{k: _up(v) for k, v in kwargs.items()})
        if name in ("half", "bfloat16"):
            return args[0].float()
        if asked and not (name.endswith("_") and not name.endswith("__")):
            args = tuple(_up(_type(a)) for a in args)
            kwargs = {k: _up(_type(v)) for k, v in kwargs.items()}
        return func(*args, **kwargs)


def _type(value: Any) -> Any:
    return torch.float32 if isinstance(value, torch.dtype) and value in HALVES else value


def _up(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype in HALVES:
        return value.float()
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(_up(v) for v in value) if not hasattr(value, "_fields") else value
    return value


def _halves(args: Any, kwargs: Mapping[str, Any], name: str) -> set[str]:
    out = {"float16"} if name == "half" else {"bfloat16"} if name == "bfloat16" else set()
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.dtype) and value in HALVES:
            out.add(str(value).removeprefix("torch."))
        elif isinstance(value, torch.Tensor) and value.dtype in HALVES:
            out.add(str(value.dtype).removeprefix("torch."))
    return out


class Attention(TorchFunctionMode):
    """Watch and change attention where it can be seen: in ``softmax`` over square scores and in the fused kernel.

    ``largest`` maps the number of the call in a forward pass to the largest logit of each head, ``entropy`` to its mean
    entropy in nats.
    """

    def __init__(self, change: Change = FAITHFUL, *, watch: bool = False) -> None:
        super().__init__()
        self.cap, self.normalise, self.watch = change.softcap, change.qk_norm, watch
        self.logits: list[list[float]] = []
        self.entropy: list[float] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self._fused(func, args, kwargs)
        if name == "softmax" and args and isinstance(args[0], torch.Tensor) and args[0].dim() == 4:
            scores = args[0]
            if self.cap is not None:
                scores = _cap(scores, self.cap)
            out = func(scores, *args[1:], **kwargs)
            if self.watch:
                self._note(scores.detach(), out.detach())
            return out
        return func(*args, **kwargs)

    def _fused(self, func: Any, args: Any, kwargs: Any) -> Any:
        q, k = args[0], args[1]
        if self.normalise:
            q, k = (torch.nn.functional.normalize(x, dim=-1) * x.shape[-1] ** 0.25 for x in (q, k))
        if self.watch or self.cap is not None:
            scores = (q.float() @ k.float().transpose(-2, -1)) / q.shape[-1] ** 0.5
            if kwargs.get("is_causal"):
                scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1), float("-inf"))
            if self.watch:
                self._note(scores.detach(), scores.detach().softmax(-1))
            if self.cap is not None and kwargs.get("attn_mask") is None and len(args) == 3:
                return (_cap(scores, self.cap).softmax(-1).to(q.dtype)) @ args[2]
        return func(q, k, *args[2:], **kwargs)

    def _note(self, scores: Any, weights: Any) -> None:
        finite = scores.masked_fill(~torch.isfinite(scores), float("-inf"))
        self.logits.append([float(x) for x in finite.amax(dim=(0, 2, 3))])
        self.entropy.append(float(-(weights * weights.clamp_min(1e-30).log()).sum(-1).mean()))


def _cap(scores: Any, cap: float) -> Any:
    return torch.where(torch.isfinite(scores), cap * torch.tanh(scores / cap), scores)


@contextmanager
def applied(change: Change, model: Any) -> Iterator[None]:
    """The parts of a condition that work on the forward pass."""
    with ExitStack() as stack:
        if change.lift is not None:
            mode = Lift(None if change.lift == "all" else change.lift)
            stack.enter_context(mode)
            stack.enter_context(torch.autocast("cuda", enabled=False))
            stack.enter_context(torch.autocast("cpu", enabled=False))
            if change.lift == "attention":
                stack.enter_context(_only_inside(model, mode))
        if change.softcap is not None or change.qk_norm:
            stack.enter_context(Attention(change))
        if change.calm:
            stack.enter_context(_without_dropout(model))
        yield


@contextmanager
def _only_inside(model: Any, mode: Lift) -> Iterator[None]:
    def switch(on: bool) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            mode.on = on

        return hook

    handles = []
    for name, module in model.named_modules():
        if is_attention(name, module):
            handles += [module.register_forward_pre_hook(switch(True)), module.register_forward_hook(switch(False))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def is_attention(name: str, module: Any) -> bool:
    """Whether a module is an attention layer as a whole, by its name or class."""
    words = f"{name.rsplit('.', 1)[-1]} {type(module).__name__}".lower()
    return any(word in words for word in ATTENTION)


@contextmanager
def _without_dropout(model: Any) -> Iterator[None]:
    off = [m for m in model.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.training]
    for module in off:
        module.eval()
    try:
        yield
    finally:
        for module in off:
            module.train()
