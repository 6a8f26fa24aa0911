"""Tensors that every rank holds a copy of must be equal to the last bit; where they are not, the ranks train different models."""

from __future__ import annotations

import re

import numpy as np

from forensics.model.checkpoint import Checkpoint, Fault, TensorInfo, TensorKind
from forensics.parsers.checkpoints.numbers import Floats, NumberReader

REPLICATED = re.compile(
    r"norm|(?:^|\.)ln_|linear_proj\.bias|attention\.dense\.bias|linear_fc2\.bias|dense_4h_to_h\.bias|position_embeddings|router\.weight", re.IGNORECASE
)
"""Parameters of which tensor parallelism keeps a whole copy on every rank: norms, biases after a row-parallel product, positions,
routers of experts. Everything else is cut, and differs by nature."""

RANK = re.compile(r"^ranks\.mp_rank_(\d+)\.model\d*\.(?P<name>.+)$")
"""Where the layout of several ranks keeps those after the first; a rank of another pipeline stage holds other layers."""


def unequal_replicas(checkpoint: Checkpoint) -> tuple[Fault, ...]:
    """Copies that differ from those of the first rank. Reads the tensors concerned; what cannot be read is passed over."""
    first = {t.name: t for t in checkpoint.tensors if t.kind is TensorKind.PARAM}
    found: dict[str, list[str]] = {}
    elements: dict[str, int] = {}
    with NumberReader() as left, NumberReader() as right:
        for tensor in checkpoint.tensors:
            match = RANK.match(tensor.name)
            origin = first.get(match["name"]) if match else None
            if match is None or origin is None or not REPLICATED.search(match["name"]) or origin.shape != tensor.shape:
                continue
            different = _different(origin, tensor, left, right)
            if different:
                found.setdefault(match["name"], []).append(match[1])
                elements[match["name"]] = max(elements.get(match["name"], 0), different)
    return tuple(_fault(first[name], ranks, elements[name]) for name, ranks in found.items())


def _different(a: TensorInfo, b: TensorInfo, left: NumberReader, right: NumberReader) -> int:
    try:
        return sum(_unequal(x.values, y.values) for x, y in zip(left.blocks(a), right.blocks(b), strict=True) if len(x.values))
    except (OSError, ValueError):
        return 0


def _unequal(a: Floats, b: Floats) -> int:
    """Elements whose bits differ: two NaN of the same bits are equal copies."""
    rows = len(a)
    return int((a.view(np.uint8).reshape(rows, -1) != b.view(np.uint8).reshape(rows, -1)).any(axis=1).sum())


def _fault(tensor: TensorInfo, ranks: list[str], elements: int) -> Fault:
    where = f"rank {int(ranks[0])}" if len(ranks) == 1 else f"{len(ranks)} ranks"
    text = f"{tensor.name}: every rank should hold the same copy, but up to {elements:,} of {tensor.numel:,} elements differ on {where} from those of the first"
    return Fault(tensor.name, TensorKind.PARAM, text)
