"""A checkpoint file that was read: its tree, with every tensor placed in the file, and what was wrong with it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from forensics.model.checkpoint import Piece
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Storage, Tensor, TreeError, leaves

LFS_MARK = b"version https://git-lfs.github.com/spec/v1"

SMALL_BYTES = 1 << 16
"""A tensor up to this size is read at once where its value is a fact (a step count, a scale)."""

FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint64": "Q",
    "uint32": "I",
    "uint16": "H",
    "uint8": "B",
    "bool": "?",
}
"""Types of elements that the struct module reads."""


@dataclass(slots=True)
class Opened:
    """One file: its tree, the classes and calls that its pickle names, facts of the container, and damage."""

    path: Path
    format: str
    tree: Any = None
    names: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of a file."""

    offset: int
    length: int


class CheckpointError(ValueError):
    """The file is no checkpoint that can be read. The message says why."""


def place_tensors(opened: Opened, find: Callable[[Storage], Place | None], *, swapped: bool = False) -> None:
    """Give every tensor of the tree its place in the file; those that point outside it are damage."""
    missing: list[str] = []
    wrong: list[str] = []
    try:
        for leaf in leaves(opened.tree):
            tensor = leaf.value
            if not isinstance(tensor, Tensor) or tensor.pieces is not None:
                continue
            problem = _place(opened.path, tensor, find, swapped)
            if problem is not None:
                (missing if problem == "missing" else wrong).append(".".join(leaf.path))
    except TreeError as problem:
        opened.damage.append(Damage(str(opened.path), f"the tree of values is no checkpoint's: {problem}", "what comes after"))
    for names, what in ((missing, "the bytes of tensors are not in the file"), (wrong, "tensors point outside of their storage")):
        if names:
            opened.damage.append(Damage(str(opened.path), what, f"{len(names)} tensors: {_some(names)}"))


def _place(path: Path, tensor: Tensor, find: Callable[[Storage], Place | None], swapped: bool) -> str | None:
    tensor.pieces = ()
    start = (0,) * len(tensor.shape)
    strides = None if is_contiguous(tensor.shape, tensor.strides) else tensor.strides
    if tensor.data is not None:
        tensor.pieces = (Piece(str(path), 0, tensor.shape, start, strides, tensor.swapped, tensor.data),)
        return None
    if tensor.storage is None:
        return None
    item = ITEM_BYTES[tensor.dtype]
    reach = span(tensor.shape, tensor.strides)
    held = tensor.storage.numel * ITEM_BYTES[tensor.storage.dtype or "uint8"]
    if (tensor.offset + reach) * item > held or tensor.numel > max(reach, 0):
        return "wrong"
    place = find(tensor.storage)
    if place is None or place.length < tensor.storage.offset + (tensor.offset + reach) * item:
        return "missing"
    tensor.pieces = (Piece(str(path), place.offset + tensor.storage.offset + tensor.offset * item, tensor.shape, start, strides, swapped),)
    return None


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements lie one after another in the order of C."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last one that a view touches."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


class SmallReads:
    """Reads numbers of small tensors, keeping files open while it does."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def __enter__(self) -> SmallReads:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for number in self.files.values():
            os.close(number)

    def values(self, tensor: Tensor) -> list[float] | None:
        """Every number of a small tensor; None where it is large, elsewhere, or of another type."""
        code = FORMATS.get(tensor.dtype)
        total = tensor.numel
        if code is None or not tensor.pieces or len(tensor.pieces) != 1 or tensor.pieces[0].strides is not None or total > SMALL_BYTES // 8:
            return None
        piece = tensor.pieces[0]
        length = total * ITEM_BYTES[tensor.dtype]
        data = piece.data if piece.data is not None else self._read(piece.path, piece.offset, length)
        if data is None or len(data) < length:
            return None
        return list(struct.unpack(f"{'>' if piece.swapped else '<'}{total}{code}", data[:length]))

    def _read(self, path: str, offset: int, length: int) -> bytes | None:
        try:
            if path not in self.files:
                if len(self.files) >= 64:
                    os.close(self.files.pop(next(iter(self.files))))
                self.files[path] = os.open(path, os.O_RDONLY)
            return os.pread(self.files[path], length, offset)
        except OSError:
            return None
