"""Checkpoints of torch.distributed.checkpoint in a recipe: written by any number of ranks, loaded by one process or several.

A run with DDP or FSDP2 is replayed in one process by a recipe that builds the plain model, gives the batches of all ranks as one,
and loads with ``load_distributed``. Under torchrun the same call fills sharded models.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

STATE = "state."
MOMENTS = ("exp_avg", "momentum_buffer", "sum", "square_avg", "step")
"""Entries of an optimizer's state by which its place in a checkpoint is known."""


def load_distributed(model: Any, optimizer: Any, folder: str | Path) -> None:
    """Load weights and optimizer state, whatever names they were saved under.

    Raises OSError, and ValueError where the folder is of another model. The folder's index is a pickle: only load your own.
    """
    import torch.distributed as dist
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict

    if not (Path(folder) / ".metadata").is_file():
        raise ValueError(f"{folder}: no checkpoint of torch.distributed.checkpoint (.metadata is missing)")
    keys = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata.keys()
    weights = get_model_state_dict(model)
    place = _place_of_model(keys, weights)
    if place is None:
        raise ValueError(f"{folder} is a checkpoint of another model: it has no tensor {next(iter(weights))!r} (it has {', '.join(sorted(keys)[:6])}, ...)")
    states = get_optimizer_state_dict(model, optimizer)
    state: dict[str, Any] = {}
    _put(state, place, weights)
    moments = _place_of_optimizer(keys, weights)
    if moments is None:
        raise ValueError(f"{folder}: no optimizer state under a known name; an optimizer that starts anew takes other steps")
    _put(state, moments, states)
    dcp.load(state, checkpoint_id=str(folder), no_dist=not dist.is_initialized())
    set_model_state_dict(model, weights)
    set_optimizer_state_dict(model, optimizer, optim_state_dict=states)


def _place_of_model(keys: Iterable[str], weights: dict[str, Any]) -> str | None:
    """What stands before the names of the weights: "model", "app.model", or nothing; None where all of them are nowhere."""
    there = set(keys)
    first = next(iter(weights))
    found = sorted((key[: -len(first)] for key in there if key == first or key.endswith(f".{first}")), key=len)
    return next((prefix.rstrip(".") for prefix in found if STATE not in prefix and all(prefix + name in there for name in weights)), None)


def _place_of_optimizer(keys: Iterable[str], weights: dict[str, Any]) -> str | None:
    ends = tuple(f"{STATE}{name}.{moment}" for name in weights for moment in MOMENTS)
    for key in sorted(keys):
        for end in ends:
            if key == end or key.endswith(f".{end}"):
                return key[: -len(end)].rstrip(".")
    return None


def _put(state: dict[str, Any], place: str, value: dict[str, Any]) -> None:
    """Nest a value under a dotted name; under none it joins what is there."""
    parts = place.split(".") if place else []
    for part in parts[:-1]:
        state = state.setdefault(part, {})
    if parts:
        state[parts[-1]] = value
    else:
        state.update(value)
