"""A session: the user's model, its states, and windows of steps run under a condition."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from forensics.replay.child import determinism
from forensics.replay.child.change import FAITHFUL, Change, applied
from forensics.replay.child.user import Loaded, Recipe, RecipeError
from forensics.replay.wire import Request, State, StepResult

GRAD_NAMES = ("grad_norm", "grad norm", "gnorm", "gradient_norm", "grad_norm/total", "norm")
AUTOCAST = {"bf16": torch.bfloat16, "bfloat16": torch.bfloat16, "fp16": torch.float16, "float16": torch.float16}


@dataclass(slots=True)
class Snapshot:
    """Everything that a step depends on, kept in main memory. ``step`` is the next step to take."""

    step: int
    model: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    random: dict[str, Any]
    scaler: Mapping[str, Any] | None = None
    loaded: Loaded = field(default_factory=Loaded)


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(v) for v in value) if not hasattr(value, "_fields") else copy.deepcopy(value)
    return copy.copy(value)


def to_device(value: Any, device: str) -> Any:
    """Move every tensor of a batch."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return type(value)({k: to_device(v, device) for k, v in value.items()}) if type(value) is dict else value.to(device) if hasattr(value, "to") else value
    if isinstance(value, (list, tuple)):
        moved = [to_device(v, device) for v in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value.to(device) if hasattr(value, "to") else value


class Session:
    """Runs steps. One model is built and reused: every window begins by putting a snapshot back."""

    def __init__(self, recipe: Recipe, request: Request, say: Callable[[str], None] = lambda _: None) -> None:
        self.recipe, self.request, self.device, self.say = recipe, request, request.device, say
        self.limits: list[str] = []
        determinism.seed()
        self.model, self.optimizer = recipe.build()
        self.model.to(self.device)
        self.clip = recipe.clip if recipe.says_clip else request.clip
        if not recipe.says_clip and not recipe.has("step") and request.clip is not None:
            self.limit(f"the recipe says nothing of clipping; the configuration's {request.clip:g} is used")
        self.scaler = torch.amp.GradScaler(self.device.split(":")[0]) if recipe.precision in ("fp16", "float16") and not recipe.has("step") else None
        self._states: dict[str, Snapshot] = {}
        self._fresh = self.snapshot(0)
        self.taken = 0

    def limit(self, text: str) -> None:
        """Note something that this replay cannot do, once."""
        if text not in self.limits:
            self.limits.append(text)

    # States

    def state(self, where: State) -> Snapshot:
        """The snapshot of a checkpoint, loaded once."""
        if where.path not in self._states:
            self.put(self._fresh)
            determinism.seed()
            loaded = self.recipe.load(self.model, self.optimizer, where.path)
            self.model.to(self.device)
            for note in getattr(self.recipe.inner, "notes", ()):
                self.limit(str(note))
            step = where.step
            if self.recipe.has("load") and loaded.step is not None and loaded.step != step:
                self.limit(f"load() says that step {loaded.step} follows {where.path}, the plan expected {step}; load() is believed")
                step = loaded.step
            if not loaded.random and not self.recipe.has("load"):
                self.limit("the checkpoint holds no state of PyTorch's random generator: dropout and the like cannot be repeated exactly")
            if not loaded.optimizer:
                self.limit(f"{where.path} holds no optimizer state: the first steps after it are not those of the run")
            if loaded.scaler and self.scaler is not None:
                self.scaler.load_state_dict(dict(loaded.scaler))
            self._states[where.path] = self.snapshot(step, loaded)
        return self._states[where.path]

    def snapshot(self, step: int, loaded: Loaded | None = None) -> Snapshot:
        """The state as it is now."""
        scaler = copy.deepcopy(self.scaler.state_dict()) if self.scaler is not None else None
        return Snapshot(step, _copied(self.model.state_dict()), _copied(self.optimizer.state_dict()), determinism.random_state(), scaler, loaded or Loaded())

    def put(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        self.model.load_state_dict(dict(snapshot.model))
        self.optimizer.load_state_dict(_copied(snapshot.optimizer))
        self.optimizer.zero_grad(set_to_none=True)
        if self.scaler is not None and snapshot.scaler is not None:
            self.scaler.load_state_dict(dict(snapshot.scaler))
        determinism.restore(snapshot.random)

    def fresh_optimizer(self) -> Mapping[str, Any]:
        """The optimizer's state before the first step."""
        return self._fresh.optimizer

    # Steps

    def run(self, start: Snapshot, last: int, change: Change = FAITHFUL, keep: Iterable[int] = (), kept: dict[int, Snapshot] | None = None) -> list[StepResult]:
        """The steps from a snapshot to ``last``, under a condition. Snapshots before the steps of ``keep`` go into ``kept``.

        Ends early after three steps without a finite loss.
        """
        self.put(start)
        rows: list[StepResult] = []
        wanted = set(keep)
        bad = 0
        with self._surgery(change, start.step):
            for step in range(start.step, last + 1):
                if step in wanted and kept is not None:
                    kept[step] = self.snapshot(step)
                rows.append(self.take(step, change))
                bad = bad + 1 if not math.isfinite(rows[-1].loss) else 0
                if bad >= 3:
                    break
        return rows

    def take(self, step: int, change: Change = FAITHFUL) -> StepResult:
        """One training step from the state as it is."""
        began = time.perf_counter()
        batch = self.batch(step, change)
        if self.recipe.has("before"):
            self.recipe.inner.before(step)
        self.taken += 1
        if self.recipe.has("step"):
            return self._their_step(step, batch, change, began)
        lr = self._set_lr(step, change)
        self.optimizer.zero_grad(set_to_none=True)
        with applied(change, self.model):
            loss = self.loss(batch, change)
            self._backward(loss, change)
        norm = self._clip(change)
        with self._frozen(change):
            if self.scaler is not None and change.lift is None:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
        return StepResult(step, float(loss.item()), float(norm), lr, time.perf_counter() - began)

    def loss(self, batch: Any, change: Change = FAITHFUL) -> Any:
        """The loss of a batch in the run's own precision."""
        dtype = AUTOCAST.get(self.recipe.precision)
        on = dtype is not None and change.lift is None
        with torch.autocast(self.device.split(":")[0], dtype=dtype, enabled=on) if dtype is not None else contextlib.nullcontext():
            return self.recipe.loss(self.model, batch)

    def batch(self, step: int, change: Change = FAITHFUL) -> Any:
        """The batch of a step, or of the step that stands for it."""
        if step in change.mixed:
            return mixed(self, change.mixed, step)
        source = change.batches.get(step, step)
        try:
            return to_device(self.recipe.batch(source), self.device)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as problem:
            raise RecipeError(f"batch({source}) failed: {type(problem).__name__}: {problem}") from problem

    def _backward(self, loss: Any, change: Change) -> None:
        if change.loss_scale is not None:
            (loss * change.loss_scale).backward()
            for p in self.model.parameters():
                if p.grad is not None:
                    p.grad.div_(change.loss_scale)
        elif self.scaler is not None and change.lift is None:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
        else:
            loss.backward()

    def _clip(self, change: Change) -> Any:
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        clip = self.clip if change.clip is None else change.clip
        if change.clip == "tensor":
            norm = torch.nn.utils.get_total_norm([p.grad for p in parameters]) if hasattr(torch.nn.utils, "get_total_norm") else math.nan
            for p in parameters:
                torch.nn.utils.clip_grad_norm_([p], (self.clip or 1.0) / max(1, len(parameters)) ** 0.5)
            return norm
        return torch.nn.utils.clip_grad_norm_(self.model.parameters(), float(clip) if clip else math.inf)

    def lr_at(self, step: int) -> float | None:
        """The learning rate of a step: the recipe's, else the logged one, else None (as the checkpoint left it)."""
        found = self.recipe.inner.lr(step) if self.recipe.has("lr") else None
        if found is not None:
            return float(found)
        return self.request.logged.get("lr", {}).get(step)

    def _set_lr(self, step: int, change: Change) -> float | None:
        lr = self.lr_at(change.lr_steps.get(step, step))
        groups = self.optimizer.param_groups
        if lr is None:
            self.limit("neither the recipe nor the log says the learning rate of every step: the checkpoint's is kept")
        else:
            first = float(groups[0]["lr"]) or 1.0
            ratios = [float(g["lr"]) / first if groups[0]["lr"] else 1.0 for g in groups]
            for group, ratio in zip(groups, ratios, strict=True):
                group["lr"] = lr * ratio if ratio != 1.0 else lr
        if change.lr != 1.0:
            return None if lr is None else lr * change.lr
        return lr

    @contextlib.contextmanager
    def _frozen(self, change: Change) -> Iterator[None]:
        kept = {n: p.detach().clone() for n, p in self.model.named_parameters() if change.frozen and n.startswith(change.frozen)}
        yield
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name in kept:
                    parameter.copy_(kept[name])

    @contextlib.contextmanager
    def _surgery(self, change: Change, first: int) -> Iterator[None]:  # noqa: ARG002 - the first step may matter to later surgery
        """What is done to the optimizer for a whole window; the learning rate is scaled where ``step`` reads it."""
        operate(self.optimizer, change.optimizer, self._fresh.optimizer)
        saved: list[Any] = []

        def before(optimizer: Any, *_: Any) -> None:
            saved[:] = [g["lr"] for g in optimizer.param_groups]
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * change.lr
            if change.clip is not None and change.clip != "tensor" and self.recipe.has("step") and float(change.clip) > 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), float(change.clip))

        def after(optimizer: Any, *_: Any) -> None:
            for group, lr in zip(optimizer.param_groups, saved, strict=True):
                group["lr"] = lr

        handles = []
        if change.lr != 1.0 or (change.clip is not None and self.recipe.has("step")):
            handles = [self.optimizer.register_step_pre_hook(before), self.optimizer.register_step_post_hook(after)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _their_step(self, step: int, batch: Any, change: Change, began: float) -> StepResult:
        if step in change.lr_steps:
            self.limit("the recipe's own step sets the learning rate: it could not be given another step's")
        norms: list[float] = []

        def note(*_: Any) -> None:
            grads = [p.grad for p in self.model.parameters() if p.grad is not None]
            norms.append(float(torch.stack([g.norm() for g in grads]).norm()) if grads else math.nan)

        handle = self.optimizer.register_step_pre_hook(note)
        try:
            with applied(change, self.model), self._frozen(change):
                logged = self.recipe.inner.step(self.model, self.optimizer, batch, step)
        finally:
            handle.remove()
        values = {str(k): float(v) for k, v in dict(logged or {}).items() if isinstance(v, (int, float)) or (isinstance(v, torch.Tensor) and v.numel() == 1)}
        loss = next((values[k] for k in ("loss", "train_loss", "train/loss", *values) if k in values and "loss" in k), None)
        if loss is None:
            raise RecipeError(f"step() must return a dict with the loss; it returned {sorted(values) or 'nothing'}")
        norm = next((values[k] for k in GRAD_NAMES if k in values), norms[0] if norms else None)
        lr = values.get("lr", values.get("learning_rate"))
        return StepResult(step, loss, norm, lr, time.perf_counter() - began, {k: v for k, v in values.items() if k not in ("loss", "lr", "grad_norm")})


def operate(optimizer: Any, surgery: str | None, fresh: Mapping[str, Any]) -> None:
    """Change an optimizer's state or settings as R8 asks."""
    if surgery is None:
        return
    if surgery == "fresh":
        groups = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
        optimizer.load_state_dict(_copied(fresh))
        for group, old in zip(optimizer.param_groups, groups, strict=True):
            group.update({k: v for k, v in old.items() if k in ("lr", "weight_decay")})
        return
    for state in optimizer.state.values():
        for key, value in state.items():
            gone = (surgery == "no_momentum" and key in ("exp_avg", "momentum_buffer")) or (surgery == "no_variance" and key in ("exp_avg_sq", "step"))
            if gone and isinstance(value, torch.Tensor):
                value.zero_()
    for group in optimizer.param_groups:
        if surgery == "beta2" and "betas" in group:
            group["betas"] = (group["betas"][0], 0.95)
        if surgery in ("eps_large", "eps_small") and "eps" in group:
            group["eps"] = group["eps"] * (100.0 if surgery == "eps_large" else 0.01)


def parts(batch: Any, start: int, stop: int, size: int) -> Any:
    """Samples ``start`` to ``stop`` of a batch: every tensor whose first dimension is ``size`` is cut."""
    if isinstance(batch, torch.Tensor):
        return batch[start:stop] if batch.dim() and batch.shape[0] == size else batch
    if isinstance(batch, Mapping):
        return {k: parts(v, start, stop, size) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        cut = [parts(v, start, stop, size) for v in batch]
        return type(batch)(*cut) if hasattr(batch, "_fields") else type(batch)(cut)
    return batch


def tensors(batch: Any) -> Iterator[Any]:
    """Every tensor of a batch."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from tensors(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from tensors(value)


def samples(batch: Any) -> int:
    """The number of samples of a batch: the first dimension that most of its tensors share; 0 where it has none."""
    sizes = [t.shape[0] for t in tensors(batch) if t.dim()]
    return max(set(sizes), key=sizes.count) if sizes else 0


def mixed(session: Session, steps: tuple[int, ...], step: int) -> Any:
    """The batch of a step after the samples of several steps changed places, in a fixed way."""
    batches = [session.batch(s) for s in steps]
    size = samples(batches[0])
    if not size or any(samples(b) != size for b in batches):
        return batches[steps.index(step)]
    order = torch.randperm(len(steps) * size, generator=torch.Generator().manual_seed(1)).tolist()
    mine = order[steps.index(step) * size : (steps.index(step) + 1) * size]
    return _picked([parts(batches[i // size], i % size, i % size + 1, size) for i in mine])


def _picked(pieces: list[Any]) -> Any:
    first = pieces[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(pieces) if first.dim() else first
    if isinstance(first, Mapping):
        return {k: _picked([p[k] for p in pieces]) for k in first}
    if isinstance(first, (list, tuple)):
        cut = [_picked([p[i] for p in pieces]) for i in range(len(first))]
        return type(first)(*cut) if hasattr(first, "_fields") else type(first)(cut)
    return first
