"""nanoGPT and scripts of its shape: tokens in ``train.bin``, random offsets from PyTorch's generator, ``ckpt.pt``.

The offsets come from the global generator of the CPU, so they are those of the run only if everything is drawn in the run's
order: the seed, the initial weights, then a batch ahead of every step and, at every evaluation, ``eval_iters`` batches of either split.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.replay.recipes.ready import Context, Ready

DEFAULTS: dict[str, Any] = {
    "seed": 1337, "batch_size": 12, "block_size": 1024, "gradient_accumulation_steps": 40, "eval_interval": 2000, "eval_iters": 200,
    "learning_rate": 6e-4, "min_lr": 6e-5, "weight_decay": 1e-1, "beta1": 0.9, "beta2": 0.95, "grad_clip": 1.0,
    "warmup_iters": 2000, "lr_decay_iters": 600000, "decay_lr": True, "dtype": "float32",
}  # fmt: skip
"""What nanoGPT's train.py has where the configuration says nothing (seed_offset 0; dtype as on a CPU)."""

PRECISION = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where the sequences of one step begin in the data, micro-batch by micro-batch."""

    starts: tuple[tuple[int, ...], ...]


class NanoGPTRecipe(Ready):
    """``model`` builds the model on the CPU, as train.py does after seeding: its initial weights move the generator.

    ``data`` is the token file (uint16; ``dtype`` for others), or the folder it lies in. ``optimizer`` makes one from the model; by default the
    model's own ``configure_optimizers``, else AdamW with weight decay on matrices. ``first`` is the step at which the process
    began (0, or the step of a resume); ``lr`` a schedule of one's own. Settings come from the run's configuration, then
    ``settings``; without any, they are nanoGPT's.
    """

    def __init__(
        self,
        context: Context,
        *,
        model: Callable[[], Any],
        data: str | Path,
        optimizer: Callable[[Any], Any] | None = None,
        first: int = 0,
        lr: Callable[[int], float] | None = None,
        dtype: str = "uint16",
        **settings: Any,
    ) -> None:
        super().__init__(context)
        import numpy as np

        self.settings = {**DEFAULTS, **{k: v for k, v in context.config.items() if k in DEFAULTS}, **settings}
        self._make_model, self._make_optimizer, self._lr = model, optimizer, lr
        path = Path(data)
        path = path / "train.bin" if path.is_dir() else path
        self._tokens = np.memmap(path, dtype=dtype, mode="r")
        held_out = path.with_name("val.bin")
        self._held_out = len(np.memmap(held_out, dtype=dtype, mode="r")) if held_out.exists() else len(self._tokens)
        self._first = first
        self._offsets: list[Offsets] = []
        self._generator: Any = None
        self.clip = float(self.settings["grad_clip"]) or None
        self.precision = PRECISION.get(str(self.settings["dtype"]), "fp32")
        self.micro_batches = int(self.settings["gradient_accumulation_steps"])

    def build(self) -> tuple[Any, Any]:
        """Model and optimizer as at step 0. The generator is left where train.py has it before the first batch."""
        import torch

        torch.manual_seed(int(self.settings["seed"]))
        model = self._make_model()
        if self._generator is None:
            self._generator = torch.Generator()
            self._generator.set_state(torch.get_rng_state())
        model = model.to(self.device).train()
        return model, (self._make_optimizer or self._own_optimizer)(model)

    def _own_optimizer(self, model: Any) -> Any:
        import torch

        rate, betas, decay = self.settings["learning_rate"], (self.settings["beta1"], self.settings["beta2"]), self.settings["weight_decay"]
        if hasattr(model, "configure_optimizers"):
            return model.configure_optimizers(decay, rate, betas, torch.device(self.device).type)
        trained = [p for p in model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in trained if p.dim() >= 2], "weight_decay": decay},
            {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=rate, betas=betas)

    def load(self, model: Any, optimizer: Any, path: str | Path) -> int:
        """Load ``ckpt.pt``: the state before the step that it returns. Raises OSError, and ValueError where it is something else."""
        import torch

        saved = torch.load(path, map_location=self.device, weights_only=True)
        if not isinstance(saved, dict) or not {"model", "optimizer", "iter_num"} <= saved.keys():
            raise ValueError(f"{path}: no checkpoint of nanoGPT's train.py (model, optimizer and iter_num are expected)")
        weights = {name.removeprefix("_orig_mod."): tensor for name, tensor in saved["model"].items()}
        model.load_state_dict(weights)
        optimizer.load_state_dict(saved["optimizer"])
        return int(saved["iter_num"])

    def sample_ids(self, step: int) -> list[int]:
        """Offsets of the step's sequences in the token file."""
        return [start for micro in self._at(step).starts for start in micro]

    def make_batch(self, step: int) -> Any:
        """(inputs, targets), int64 of shape (batch, block); a list of them where gradients are accumulated."""
        micro = [self._sequences(starts) for starts in self._at(step).starts]
        return micro[0] if len(micro) == 1 else micro

    def loss(self, model: Any, batch: Any) -> Any:
        """Mean cross-entropy as the model computes it; over micro-batches their mean."""
        if isinstance(batch, list):
            return sum(self.loss(model, part) / self.micro_batches for part in batch)
        return model(*batch)[1]

    def losses(self, model: Any, batch: Any) -> Any:
        """Mean cross-entropy of every sequence, shape (samples,)."""
        import torch

        if isinstance(batch, list):
            return torch.cat([self.losses(model, part) for part in batch])
        inputs, targets = batch
        logits = model(inputs, targets)[0]
        each = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-1, reduction="none")
        return each.view(targets.shape).mean(1)

    def lr(self, step: int) -> float:
        """The schedule of nanoGPT: warmup, then cosine to ``min_lr``; or the one that was given."""
        if self._lr is not None:
            return self._lr(step)
        top, low, warmup, end = (float(self.settings[k]) for k in ("learning_rate", "min_lr", "warmup_iters", "lr_decay_iters"))
        if not self.settings["decay_lr"]:
            return top
        if step < warmup:
            return top * (step + 1) / (warmup + 1)
        if step > end:
            return low
        return low + 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / (end - warmup))) * (top - low)

    def _sequences(self, starts: tuple[int, ...]) -> tuple[Any, Any]:
        import numpy as np
        import torch

        length = int(self.settings["block_size"])
        rows = torch.from_numpy(np.stack([self._tokens[i : i + length + 1] for i in starts]).astype(np.int64))
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def _at(self, step: int) -> Offsets:
        if self._generator is None:
            self.build()
        place = step - self._first
        if place < 0:
            raise ValueError(f"step {step} lies before step {self._first}, at which this process began")
        while len(self._offsets) <= place:
            self._offsets.append(self._draw(self._first + len(self._offsets)))
        return self._offsets[place]

    def _draw(self, step: int) -> Offsets:
        """The batches of the next step. The first of them is drawn ahead of the evaluation at that step."""
        length = int(self.settings["block_size"])
        starts = [self._random(len(self._tokens) - length)]
        if step % int(self.settings["eval_interval"]) == 0:
            for size in (len(self._tokens), self._held_out):
                for _ in range(int(self.settings["eval_iters"])):
                    self._random(size - length)
        starts += [self._random(len(self._tokens) - length) for _ in range(self.micro_batches - 1)]
        return Offsets(tuple(starts))

    def _random(self, below: int) -> tuple[int, ...]:
        import torch

        return tuple(torch.randint(below, (int(self.settings["batch_size"]),), generator=self._generator).tolist())
