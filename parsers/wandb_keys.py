"""A hash table from the raw bytes of an item's key to a key number, for many items at once.

The bytes are read in blocks of four words and hashed by a sum of products; whatever the hash says, all bytes of every item
are compared with the key it was taken for. Two keys with one hash therefore cost time, never a wrong name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers import wandb_wire as wire
from forensics.parsers.wandb_framing import ByteArray, words

BLOCK = 32
"""Bytes of a key that are read at once: most keys need one block."""

MAX_BLOCKS = 16
"""Longer keys (512 bytes) are left to the slow path."""

MAX_KEYS = (1 << 16) - 1
"""More keys than this are left to the slow path: key numbers fit 16 bits, so that they can be sorted in linear time."""

_KEEP = words(np.array([[0xFF if i < n else 0 for i in range(BLOCK)] for n in range(BLOCK + 1)], np.uint8).ravel(), BLOCK)[::BLOCK]
"""Which bytes of a block belong to a key, by how much of the key is left."""

_FACTORS = np.random.default_rng(0x57414E44).integers(0, 1 << 63, (MAX_BLOCKS + 1, 4), np.uint64) * np.uint64(2) + np.uint64(1)
_SAME = 0x01010101
"""Four comparison results, all true, read as one number."""

Word = NDArray[np.uint64]


@dataclass(slots=True)
class KeyTable:
    """Known keys. Number 0 means none; ``names[k]`` is the name of key ``k``."""

    names: list[str] = field(default_factory=lambda: [""])
    _slots: IntArray = field(default_factory=lambda: np.zeros(64, np.int64))
    _hashes: Word = field(default_factory=lambda: np.zeros(16, np.uint64))
    _lengths: IntArray = field(default_factory=lambda: np.zeros(16, np.int64))
    _blocks: list[NDArray[np.void]] = field(default_factory=list)

    def find(self, data: ByteArray, at: IntArray, length: IntArray) -> tuple[IntArray, BoolArray]:
        """Number of every key ``data[at : at + length]``, and whether it is known for certain. Shapes (keys,)."""
        taken = (length > 0) & (length <= BLOCK * MAX_BLOCKS)
        length = np.where(taken, length, 0)
        blocks = _read(data, at, length)
        total = length.astype(np.uint64) * _FACTORS[-1, 0]
        for block, factors in zip(blocks, _FACTORS, strict=False):
            for k in range(4):
                total += block[:, k] * factors[k]
        number = self._lookup(total)
        new = np.flatnonzero(taken & (number == 0))
        if len(new):
            for i in new[np.unique(total[new], return_index=True)[1]].tolist():
                self._insert(total[i], int(length[i]), [block[i] for block in blocks])
            number = self._lookup(total)
        same = taken & (number > 0) & (self._lengths[number] == length)
        for known, block in zip(self._blocks, blocks, strict=False):
            equal = known[number].view("<u8").reshape(-1, 4) == block
            same &= equal.view("<u4").ravel() == _SAME
        return number, same

    def _lookup(self, total: Word) -> IntArray:
        size = len(self._slots)
        slot = (total >> np.uint64(40)).astype(np.int64) & (size - 1)
        number: IntArray = self._slots[slot]
        while len(wrong := np.flatnonzero((number > 0) & (self._hashes[number] != total))):
            slot[wrong] = (slot[wrong] + 1) & (size - 1)
            number[wrong] = self._slots[slot[wrong]]
        return number

    def _insert(self, total: np.uint64, length: int, blocks: list[Word]) -> None:
        number = len(self.names)
        if number > MAX_KEYS:
            return
        self.names.append(_name(b"".join(block.tobytes() for block in blocks)[:length]))
        if number >= len(self._hashes):
            self._grow()
        while len(self._blocks) < len(blocks):
            self._blocks.append(np.zeros(len(self._hashes), f"V{BLOCK}"))
        self._hashes[number] = total
        self._lengths[number] = length
        for known, block in zip(self._blocks, blocks, strict=False):
            known[number] = block.view(f"V{BLOCK}")[0]
        self._place(number)

    def _grow(self) -> None:
        """Room for twice as many keys, with four slots for every key."""
        size = len(self._hashes)
        self._hashes = np.append(self._hashes, np.zeros(size, np.uint64))
        self._lengths = np.append(self._lengths, np.zeros(size, np.int64))
        self._blocks = [np.append(block, np.zeros(size, block.dtype)) for block in self._blocks]
        self._slots = np.zeros(8 * size, np.int64)
        for number in range(1, size):
            self._place(number)

    def _place(self, number: int) -> None:
        slot = int(self._hashes[number] >> np.uint64(40)) & (len(self._slots) - 1)
        while self._slots[slot]:
            slot = (slot + 1) & (len(self._slots) - 1)
        self._slots[slot] = number


def _read(data: ByteArray, at: IntArray, length: IntArray) -> list[Word]:
    """The keys in blocks, zero past their end: a list over the block of arrays, each of shape (keys, 4)."""
    blocks = []
    window = words(data, BLOCK)
    for i in range(0, int(length.max(initial=0)), BLOCK):
        block = window[at + i].view("<u8")
        block &= _KEEP[np.clip(length - i, 0, BLOCK)].view("<u8")
        blocks.append(block.reshape(-1, 4))
    return blocks


def _name(span: bytes) -> str:
    try:
        return wire.item(span).name
    except wire.MalformedError:
        return ""
