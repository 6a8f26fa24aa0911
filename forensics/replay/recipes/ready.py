"""What all ready-made recipes share: batches out of the flight recorder where it kept them, checked by it where it did not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from forensics.flight.reading import FlightLog


class Context(Protocol):
    """What a recipe's factory is called with."""

    run_dir: Path
    config: Mapping[str, Any]
    device: Any


class Ready:
    """Base of the ready-made recipes. Subclasses give ``build``, ``load``, ``make_batch`` and ``loss``.

    Steps are the run's own step numbers, as logged.
    """

    clip: float | None = None
    precision = "fp32"
    scaler: Mapping[str, Any] | None = None
    """State of the GradScaler, once ``load`` has run."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.device = context.device
        self.flight = FlightLog(Path(context.run_dir))
        self.notes: list[str] = []
        """What is not exact, in sentences."""

    def batch(self, step: int) -> Any:
        """The batch of a step on the device: the one that the flight recorder kept, else made anew and held against its record.

        Raises OtherBatchError where the record names another batch.
        """
        kept = self.flight.kept(step)
        if kept is not None:
            return moved(kept.value(), self.device)
        batch = self.make_batch(step)
        self.flight.check(step, batch)
        return moved(batch, self.device)

    def before(self, step: int) -> None:
        """What the training loop draws from the global generators between two steps; called ahead of the forward pass of a step."""

    def make_batch(self, step: int) -> Any:
        """The batch of a step, on the CPU."""
        raise NotImplementedError


def moved(value: Any, device: Any) -> Any:
    """Every tensor of a nesting on the device; everything else as it is."""
    if isinstance(value, Mapping):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(item, device) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    return value.to(device) if hasattr(value, "to") and hasattr(value, "device") else value


def one_by_one(batch: Any) -> list[Any]:
    """A batch taken apart into batches of one sample: every tensor with the common first axis is cut along it."""
    size = samples(batch)
    return [_cut(batch, place, size) for place in range(size)]


def samples(batch: Any) -> int:
    """Number of samples: the first axis of the first tensor."""
    if isinstance(batch, Mapping):
        found = [samples(item) for item in batch.values()]
    elif isinstance(batch, (list, tuple)):
        found = [samples(item) for item in batch]
    else:
        return int(batch.shape[0]) if getattr(batch, "ndim", 0) else 0
    return next((n for n in found if n), 0)


def _cut(value: Any, place: int, size: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(item, place, size) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cut(item, place, size) for item in value)
    return value[place : place + 1] if getattr(value, "ndim", 0) and value.shape[0] == size else value
