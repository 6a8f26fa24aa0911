"""Lightning: a module and a datamodule, made as in the training script.

    from lightning import seed_everything
    from forensics.replay.recipes.lightning import LightningRecipe

    def recipe(context):
        seed_everything(1)
        return LightningRecipe(context, module=MyModule(), datamodule=MyData(), clip=1.0)

Made in the script's order after the script's seed, the generators stand where they stood when ``fit`` was called.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forensics.flight import rng
from forensics.flight.lightning import RNG_KEY
from forensics.replay.recipes.ready import Context, Ready, one_by_one


class LightningRecipe(Ready):
    """Replays a run with automatic optimization and one optimizer. Step N is ``global_step`` N: N steps were taken before it.

    ``datamodule`` may be a data loader. ``clip``, ``accumulate`` and ``precision`` ("fp32", "bf16", "fp16") are those of the Trainer.
    """

    def __init__(self, context: Context, *, module: Any, datamodule: Any, clip: float | None = None, accumulate: int = 1, precision: str = "fp32") -> None:
        super().__init__(context)
        import torch

        self._start = torch.get_rng_state()
        self._module = module
        self.clip, self.precision, self.micro_batches = clip, precision, accumulate
        if hasattr(datamodule, "train_dataloader"):
            datamodule.prepare_data()
            datamodule.setup("fit")
            self._loader, self._held_out = datamodule.train_dataloader(), _loaders(datamodule)
        else:
            self._loader, self._held_out = datamodule, 0
        self._own_start = None if self._loader.generator is None else self._loader.generator.get_state()
        self._orders: list[list[list[int]]] = []
        self._per_epoch = max(1, -(-len(self._loader) // accumulate))
        self._rates: list[float] | None = None
        if self._kind() == "global":
            self.notes.append("samples were shuffled by the global generator: epochs after the first are exact only where the flight recorder confirms it")

    def build(self) -> tuple[Any, Any]:
        """The module and its optimizer, as ``configure_optimizers`` makes it."""
        module = copy.deepcopy(self._module).to(self.device).train()
        return module, _optimizers(module)[0]

    def load(self, model: Any, optimizer: Any, path: str | Path) -> int:
        """Load a ``.ckpt`` of Lightning: the step after it. Raises OSError, ValueError, RuntimeError; nothing in it is executed."""
        import torch

        saved = torch.load(path, map_location=self.device, weights_only=True)
        if not isinstance(saved, dict) or not {"state_dict", "global_step"} <= saved.keys():
            raise ValueError(f"{path}: no checkpoint of Lightning (state_dict and global_step are expected)")
        if not saved.get("optimizer_states"):
            raise ValueError(f"{path}: no optimizer state (save_weights_only); an optimizer that starts anew takes other steps")
        model.load_state_dict(saved["state_dict"])
        optimizer.load_state_dict(saved["optimizer_states"][0])
        states = saved.get(RNG_KEY)
        if isinstance(states, Mapping):
            rng.restore({name: tensor.cpu().numpy() for name, tensor in states.items()})
        else:
            self.notes.append("Lightning keeps no random state in checkpoints (the flight recorder's callback does): dropout is not that of the run")
        return int(saved["global_step"])

    def before(self, step: int) -> None:
        """Between epochs the loaders for validation draw, and the training loader and its sampler, unless they have a generator of their own."""
        import torch

        if step > 0 and step % self._per_epoch == 0:
            own = 0 if self._own_start is not None else 2 if self._kind() == "global" else 1
            for _ in range(self._held_out + own):
                torch.empty((), dtype=torch.int64).random_()

    def sample_ids(self, step: int) -> list[int]:
        """Indices into the dataset that the step saw."""
        recorded = self.flight.sample_ids(step)
        return [int(i) for i in recorded] if recorded else [row for rows in self._rows(step) for row in rows]

    def make_batch(self, step: int) -> Any:
        """What the loader gives; a list of micro-batches where gradients are accumulated."""
        micro = [self._loader.collate_fn([self._loader.dataset[row] for row in rows]) for rows in self._rows(step)]
        return micro[0] if self.micro_batches == 1 else micro

    def loss(self, model: Any, batch: Any) -> Any:
        """What ``training_step`` returns; over micro-batches the mean."""
        if self.micro_batches > 1 and isinstance(batch, list):
            return sum(self._one(model, part) / self.micro_batches for part in batch)
        return self._one(model, batch)

    def losses(self, model: Any, batch: Any) -> Any:
        """The loss of every sample alone, shape (samples,)."""
        import torch

        parts = batch if self.micro_batches > 1 and isinstance(batch, list) else [batch]
        return torch.stack([self._one(model, one).detach() for part in parts for one in one_by_one(part)])

    def lr(self, step: int) -> float | None:
        """The learning rate of the step, by the scheduler of ``configure_optimizers``; None where it depends on metrics."""
        import torch

        optimizer, found = _optimizers(copy.deepcopy(self._module)) if self._rates is None else (None, None)
        if self._rates is None:
            self._scheduler, self._interval, self._frequency = _schedule(found)
            self._rates = [float(optimizer.param_groups[0]["lr"])]  # type: ignore[union-attr]
        if isinstance(self._scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            return None
        while self._scheduler is not None and len(self._rates) <= step:
            taken = len(self._rates)
            every = self._frequency * (1 if self._interval == "step" else self._per_epoch)
            if taken % every == 0:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the optimizer takes no step here
                    self._scheduler.step()
            self._rates.append(float(self._scheduler.optimizer.param_groups[0]["lr"]))
        return self._rates[min(step, len(self._rates) - 1)]

    def _one(self, model: Any, batch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*self.log.*")  # there is no trainer to log to
            found = model.training_step(batch, 0)
        return found["loss"] if isinstance(found, Mapping) else found

    def _kind(self) -> str:
        """Where the order of samples comes from: "fixed", "epoch" (a seed and the epoch), "own" (the loader's generator), "global"."""
        sampler = getattr(self._loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            return "epoch"
        if type(sampler).__name__ == "SequentialSampler":
            return "fixed"
        return "global" if self._own_start is None else "own"

    def _rows(self, step: int) -> list[list[int]]:
        epoch, place = divmod(step, self._per_epoch)
        if step < 0:
            raise ValueError("the first step is step 0")
        if len(self._orders) <= epoch:
            self._draw(epoch)
        return self._orders[epoch][place * self.micro_batches : (place + 1) * self.micro_batches]

    def _draw(self, epoch: int) -> None:
        """The order of every epoch up to this one, by drawing what the loader draws; the global generator is left as it was."""
        import torch

        before = torch.get_rng_state()
        torch.set_rng_state(self._start)
        if self._own_start is not None:
            self._loader.generator.set_state(self._own_start)
        self._orders = []
        for number in range(epoch + 1):
            if hasattr(self._loader.sampler, "set_epoch"):
                self._loader.sampler.set_epoch(number)
            # A loader draws the seed of its workers before its sampler draws, whether it has workers or not.
            torch.empty((), dtype=torch.int64).random_(generator=self._loader.generator)
            # Lightning stops at the last batch: what a sampler draws after it is not drawn.
            batches, sampler = len(self._loader), iter(self._loader.batch_sampler)
            self._orders.append([list(next(sampler)) for _ in range(batches)])
            for _ in range(self._held_out):
                torch.empty((), dtype=torch.int64).random_()
        torch.set_rng_state(before)


def _loaders(datamodule: Any) -> int:
    """How many data loaders for validation there are: each draws a seed per epoch."""
    try:
        found = datamodule.val_dataloader()
    except Exception:  # noqa: BLE001 - a hook that was not written raises the framework's own error
        return 0
    return len(found) if isinstance(found, (list, tuple)) else int(found is not None)


def _optimizers(module: Any) -> tuple[Any, Any]:
    """The only optimizer, and the configuration of its scheduler. Raises ValueError where there are several."""
    found = module.configure_optimizers()
    scheduler = None
    if isinstance(found, Mapping):
        found, scheduler = found["optimizer"], found.get("lr_scheduler")
    elif isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], (list, tuple)):
        found, scheduler = list(found[0]), (list(found[1]) or [None])[0]
    if isinstance(found, (list, tuple)):
        if len(found) != 1:
            raise ValueError(f"configure_optimizers gives {len(found)} optimizers; this recipe replays runs with one: write `step` in a recipe of your own")
        found = found[0]
        if isinstance(found, Mapping):
            found, scheduler = found["optimizer"], found.get("lr_scheduler")
    return found, scheduler


def _schedule(found: Any) -> tuple[Any, str, int]:
    if isinstance(found, Mapping):
        return found["scheduler"], str(found.get("interval", "epoch")), int(found.get("frequency", 1))
    return found, "epoch", 1
