"""What a checkpoint's pickle holds once it was read: tensors by place, and plain containers around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forensics.model.checkpoint import Piece
from forensics.parsers.checkpoints.safe_pickle import Global, Made

MAX_NODES = 3_000_000
"""Values visited in one tree: references could make a small file a tree without end."""

MAX_DEPTH = 40
"""Containers within containers; the deepest real ones (Megatron's arguments) have about ten."""

LONG_LIST = 512
"""A list of plain values longer than this is looked at as one value."""

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "complex32": 4,
    "qint8": 1,
    "quint8": 1,
    "qint32": 4,
}
"""Types of elements by PyTorch's names, and their size in bytes."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A run of bytes in the file that tensors look into. ``dtype`` None: bytes whose type the tensor names."""

    key: str
    dtype: str | None
    numel: int
    device: str = ""
    offset: int = 0
    """Bytes into the storage ``key``: old files have views of storages."""


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor as the pickle describes it: a storage, and how it looks into it, in elements."""

    storage: Storage | None
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    parameter: bool = False
    data: bytes | None = None
    swapped: bool = False
    pieces: tuple[Piece, ...] | None = None
    """Where the elements lie; None until a reader has looked, empty where they are nowhere."""

    def set_state(self, state: object) -> None:
        """State that a pickle sets on a tensor (names of dimensions, attributes) changes nothing here."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a tree with the keys that lead to it."""

    path: tuple[str, ...]
    value: Any


class TreeError(ValueError):
    """The tree is too large or too deep to be a checkpoint."""


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values inside a container; of an object that was not made, its state."""
    if isinstance(value, Mapping):
        yield from ((str(k)[:500], v) for k, v in value.items() if not isinstance(k, (Made, Global)))
    elif isinstance(value, (list, tuple)):
        yield from ((str(i), v) for i, v in enumerate(value))
    elif isinstance(value, Made):
        if isinstance(value.state, Mapping):
            yield from children(value.state)
        elif isinstance(value.state, tuple):
            for part in value.state:
                if isinstance(part, Mapping):
                    yield from children(part)
        if value.pairs:
            yield from children(value.pairs)


def is_container(value: Any) -> bool:
    """Whether a value may hold others."""
    return isinstance(value, (Mapping, list, tuple, Made))


def leaves(root: Any) -> Iterator[Leaf]:
    """Every tensor and plain value of a tree, in the order of the file; what leads back to itself is left out.

    Raises TreeError past MAX_NODES.
    """
    stack: list[tuple[tuple[str, ...], Any, frozenset[int]]] = [((), root, frozenset())]
    count = 0
    while stack:
        path, value, above = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise TreeError(f"more than {MAX_NODES} values")
        if not is_container(value):
            yield Leaf(path, value)
            continue
        if id(value) in above or len(path) >= MAX_DEPTH:
            continue
        if _is_long_list(value):
            yield Leaf(path, value)
            continue
        seen = above | {id(value)}
        inside = [((*path, key), child, seen) for key, child in children(value)]
        stack.extend(reversed(inside))


def _is_long_list(value: Any) -> bool:
    """A list of many numbers or texts (positions of a data loader) is one value."""
    return isinstance(value, (list, tuple)) and len(value) > LONG_LIST and not any(is_container(v) or isinstance(v, Tensor) for v in value)


def plain(value: Any, depth: int = 0, limit: int = 1000) -> Any:  # noqa: PLR0911 - one line per type
    """A value as JSON data: texts, numbers, lists and dicts up to a bound, short names for the rest."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value) if abs(value) < 2**1000 else "a very large integer"
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    if isinstance(value, Tensor):
        return f"tensor {value.dtype}{list(value.shape)}"
    if isinstance(value, Global):
        return value.name
    if depth > 6:
        return "..."
    if isinstance(value, Mapping):
        return {str(k)[:200]: plain(v, depth + 1, limit) for k, v in list(value.items())[:limit]}
    if isinstance(value, (list, tuple)):
        return [plain(v, depth + 1, limit) for v in list(value)[:limit]]
    if isinstance(value, Made):
        inside = dict(children(value))
        return plain(inside, depth + 1, limit) if inside else f"{value.name}({', '.join(str(plain(a, depth + 1, 40)) for a in value.args[:4])})"
    return str(value)[:limit]
