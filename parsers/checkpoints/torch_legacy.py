"""PyTorch's files before 1.6: five pickles one after another, then the storages, each behind its length."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import CheckpointError, Opened, Place, place_tensors
from forensics.parsers.checkpoints.safe_pickle import Pickled, PickleError, load
from forensics.parsers.checkpoints.torch_names import MEANINGS, persistent_storage
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Storage

NAME = "torch legacy"

MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The first pickle: an integer that says what the file is. A protocol comes before it."""

FIRST_BYTES = 1 << 22
"""Read at first; eight times as much where the pickles turn out to be longer."""

MAX_PICKLE_BYTES = 1 << 29
"""Pickles are looked for in this many first bytes; they hold names, not numbers."""


def is_mine(head: bytes) -> bool:
    """Whether a file begins like one."""
    return head[2 : 2 + len(MAGIC)] == MAGIC and head[:1] == b"\x80"


def read(path: Path) -> Opened:
    """Read the facts of a file. Raises CheckpointError where its pickles are broken, OSError where it cannot be read."""
    opened = Opened(path, NAME, size=path.stat().st_size)
    with path.open("rb") as file:
        width = FIRST_BYTES
        while True:
            data = os.pread(file.fileno(), width, 0)
            whole = len(data) < width or width >= MAX_PICKLE_BYTES
            try:
                keys = _pickles(data, opened, whole)
                break
            except PickleError as problem:
                if whole:
                    raise CheckpointError(f"its pickle cannot be read: {problem}") from problem
                width *= 8
        places = _places(file.fileno(), keys, opened.size)
    place_tensors(opened, lambda storage: places.get(storage.key), swapped=keys.swapped)
    return opened


@dataclass(frozen=True, slots=True)
class _Keys:
    """Storages in the order of the file, where the first one begins, and the byte order."""

    storages: tuple[Storage, ...] = ()
    end: int = 0
    swapped: bool = False


def _pickles(data: bytes, opened: Opened, whole: bool) -> _Keys:
    """Read the five pickles: what the file is, a version, a system, the tree, the order of the storages."""
    storages: dict[str, Storage] = {}

    def persistent(key: Any) -> Storage:
        storage = persistent_storage(key)
        storages.setdefault(storage.key, storage)
        return storage

    about = load(data, {}, start=load(data, {}, start=load(data, {}).end).end)
    tree = load(data, MEANINGS, persistent, start=about.end)
    try:
        order = load(data, {}, start=tree.end)
    except PickleError as problem:
        if not whole:
            raise
        opened.damage.append(Damage(str(opened.path), f"the list of storages cannot be read: {problem}", "the numbers of every tensor"))
        order = Pickled([], (), (), len(data))
    opened.tree, opened.names, opened.calls = tree.value, tree.names, tree.calls
    swapped = isinstance(about.value, dict) and about.value.get("little_endian") is False
    listed = [str(k) for k in order.value] if isinstance(order.value, list) else []
    return _Keys(tuple(storages[k] for k in listed if k in storages), order.end, swapped)


def _places(number: int, keys: _Keys, size: int) -> dict[str, Place]:
    """The storages follow in the order of the list of keys: a count of elements, then the elements."""
    places: dict[str, Place] = {}
    at = keys.end
    for storage in keys.storages:
        head = os.pread(number, 8, at) if at + 8 <= size else b""
        if len(head) < 8:
            break
        (count,) = struct.unpack(">q" if keys.swapped else "<q", head)
        length = count * ITEM_BYTES[storage.dtype or "uint8"]
        if count < 0:
            break
        if at + 8 + length <= size:
            places[storage.key] = Place(at + 8, length)
        at += 8 + length
    return places
