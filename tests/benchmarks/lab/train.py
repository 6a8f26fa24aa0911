"""Train one recipe, with at most one fault, and keep what would be logged. The same recipe gives the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from tests.benchmarks.lab.recipes import Recipe
from tests.benchmarks.lab.schedules import factor, make_optimizer
from tests.benchmarks.lab.tasks import TASKS, Batch

if TYPE_CHECKING:
    from tests.benchmarks.lab.faults import Fault

LOST_STEPS = 30
"""A run whose loss is no number any more goes on for so many steps before somebody stops it."""

FIRST_SCALE, GROWTH_STEPS = 2.0**16, 250
"""Loss scale of emulated fp16 at the start, and clean steps after which it doubles (2000 in PyTorch; these runs are short)."""

EPOCHS = 3
"""From so many epochs on the batches are numbered in each; one lone new beginning would look like a data loader that lost its place."""

Row = dict[str, float]


@dataclass(slots=True)
class Log:
    """Rows as they were logged; ``stopped`` where the run broke off."""

    rows: list[Row] = field(default_factory=list)
    stopped: bool = False

    def column(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of a logged quantity, the last one where a step was logged twice."""
        points = {int(row["step"]): row[name] for row in self.rows if name in row}
        return np.array(list(points)), np.array(list(points.values()), dtype=float)


class Trainer:
    """The state of a run. Faults reach into it at four points: the step, the batch, the gradient, the row."""

    def __init__(self, recipe: Recipe, fault: Fault | None = None) -> None:
        self.r, self.fault = recipe, fault
        self.task = TASKS[recipe.task](recipe)
        self.model = self.task.model
        self.optimizer = make_optimizer(recipe, self.model)
        self.noise = torch.Generator().manual_seed(recipe.seed + 5)
        self.clock = np.random.default_rng(recipe.seed + 6)
        self.time = 1.7e9
        self.scale, self.clean_steps = FIRST_SCALE, 0
        self.log = Log()
        self.pending: list[float] = []
        self.frozen = False
        self.seen = 0
        self.guard = recipe.seed % 2 == 0
        """Whether updates from a loss that is no number are skipped."""

    def run(self) -> Log:
        """All steps."""
        lost = step = 0
        saved: dict[str, object] = {}
        rewind = self.fault.n if self.fault is not None and self.fault.kind == "log_rewound" else 0
        while step < self.r.steps:
            if rewind and step == self.fault.step - rewind and not saved:  # type: ignore[union-attr]
                saved = deepcopy({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})
            if rewind and step == self.fault.step:  # type: ignore[union-attr]
                self.model.load_state_dict(saved["model"])  # type: ignore[arg-type]
                self.optimizer.load_state_dict(saved["optimizer"])  # type: ignore[arg-type]
                step, rewind = step - rewind, 0
            row = self.step(step)
            lost = 0 if math.isfinite(row["loss"]) else lost + 1
            self._write(step, row)
            if lost >= LOST_STEPS:
                self.log.stopped = True
                break
            step += 1
        return self.log

    def step(self, step: int) -> Row:
        """One optimizer step."""
        r, fault = self.r, self.fault
        if fault is not None:
            fault.at_step(self, step)
        lr = r.lr * factor(r, fault.clock(step) if fault is not None else step)
        lr = fault.rate(self, step, lr) if fault is not None else lr
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["scale"]
        size = self.size(step)
        loss, extras, index = self._gradients(step, size)
        if fault is not None:
            fault.at_gradient(self, step)
        row: Row = {"step": step, "loss": loss, "lr": lr, "batch_size": size * r.accumulate, "batch_id": index, **extras}
        self._update(row)
        self.task.after(step)
        self.seen += size * r.accumulate
        row["samples"] = self.seen
        row["epoch"] = self.seen / self.task.count
        return row

    def size(self, step: int) -> int:
        """Rows of a batch at a step."""
        at, _ = self.r.batch_ramp
        size = self.r.batch // 2 if step < at else self.r.batch
        return self.fault.size(step, size) if self.fault is not None else size

    def _gradients(self, step: int, size: int) -> tuple[float, dict[str, float], int]:
        parts = self.r.accumulate
        self.optimizer.zero_grad(set_to_none=True)
        losses, extras = [], {}
        first = step if self.fault is None else self.fault.position(step)
        divide = parts if self.fault is None else self.fault.divide(step, parts)
        for part in range(parts):
            batch: Batch = self.task.batch(first * parts + part, size)
            if self.fault is not None:
                batch = self.fault.batch(self, step, batch, first * parts + part)
            loss, extras = self.task.backward(batch, step, 1.0 / divide)
            losses.append(loss)
        return sum(losses) / divide, extras, self._batch_id(first * parts)

    def _batch_id(self, index: int) -> int:
        """Number of a batch in its epoch where several epochs are seen, else in the run."""
        epochs = self.r.steps * self.r.accumulate / self.task.batches_per_epoch
        return index % self.task.batches_per_epoch if epochs >= EPOCHS else index

    def _update(self, row: Row) -> None:
        r = self.r
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        if r.precision == "fp16":
            row["loss_scale"] = self.scale
            if not self._unscaled(gradients):
                row["grad_norm"] = math.inf
                return
        elif r.precision == "bf16":
            for g in gradients:
                g.copy_(g.to(torch.bfloat16))
            row["loss"] = float(torch.tensor(row["loss"]).to(torch.bfloat16)) if "bf16_loss" in r.extras else row["loss"]
        norms = torch.stack([g.norm() for g in gradients])
        total = float(norms.norm())
        row["grad_norm"] = total
        if "layers" in r.extras:
            names = [n for n, p in self.model.named_parameters() if p.grad is not None and p.ndim > 1][:6]
            row.update({f"grad_norm/{n}": float(p.grad.norm()) for n, p in self.model.named_parameters() if n in names})
        if self.guard and not math.isfinite(total):
            return
        if r.clip and total > r.clip:
            for g in gradients:
                g.mul_(r.clip / total)
        if not self.frozen:
            self.optimizer.step()
        if "param_norm" in r.extras:
            row["param_norm"] = float(torch.stack([p.detach().norm() for p in self.model.parameters()]).norm())

    def _unscaled(self, gradients: list[torch.Tensor]) -> bool:
        """Round the gradients as fp16 with a loss scale does; False where they overflowed and the step is skipped."""
        for g in gradients:
            g.copy_((g * self.scale).to(torch.float16).float() / self.scale)
        if all(bool(torch.isfinite(g).all()) for g in gradients):
            self.clean_steps += 1
            if self.clean_steps >= GROWTH_STEPS:
                self.scale, self.clean_steps = self.scale * 2, 0
            return True
        self.scale, self.clean_steps = max(1.0, self.scale / 2), 0
        return False

    def _write(self, step: int, row: Row) -> None:
        r = self.r
        pause = 1.0 if step % 500 else 4.0
        seconds = 0.05 * float(self.clock.lognormal(0, 0.15)) * pause
        if (r.restart_at and step == r.restart_at) or (self.fault is not None and self.fault.pause(step)):
            seconds += 180.0
        self.time += seconds
        self.pending.append(row["loss"])
        evaluate = r.validate and step % r.validate == r.validate - 1
        if evaluate:
            row["val_loss"] = self.task.held_out_loss()
        if step % r.every == 0:
            if r.style in {"hf", "megatron"}:
                row["loss"] = sum(self.pending) / len(self.pending)
            self.pending = []
            row["throughput"] = row["batch_size"] / min(seconds, 1.0)
            row["time"] = self.time
            self.log.rows.append(row)
        elif evaluate:
            self.log.rows.append({"step": step, "val_loss": row["val_loss"], "time": self.time})


def train(recipe: Recipe, fault: Fault | None = None) -> Log:
    """A run from its recipe."""
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        return Trainer(recipe, fault).run()


def state(trainer: Trainer, name: str) -> list[torch.Tensor]:
    """One kind of the optimizer's state, e.g. all second moments."""
    states: list[Mapping[str, torch.Tensor]] = list(trainer.optimizer.state.values())
    return [s[name] for s in states if name in s]
