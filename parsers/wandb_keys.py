"""A hash table from the raw bytes of an item's key to a key number, for many items at once.

The bytes are read as 8-byte words and hashed by a sum of products; whatever the hash says, every word of every item is
compared with the key it was taken for. Two keys with one hash therefore cost time, never a wrong name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers import wandb_wire as wire
from forensics.parsers.wandb_framing import ByteArray, words

MAX_KEY_WORDS = 64
"""Longer keys (512 bytes) are left to the slow path."""

MAX_KEYS = (1 << 16) - 1
"""More keys than this are left to the slow path: key numbers fit 16 bits, so that they can be sorted in linear time."""

_KEEP = np.array([(1 << 8 * min(max(n - 8 * MAX_KEY_WORDS, 0), 8)) - 1 for n in range(16 * MAX_KEY_WORDS + 1)], np.uint64)
"""Which bytes of a word belong to a key, by how much of the key is left, shifted so that it is never negative."""

_FACTORS = np.random.default_rng(0x57414E44).integers(0, 1 << 63, MAX_KEY_WORDS + 1, np.uint64) * np.uint64(2) + np.uint64(1)
Word = NDArray[np.uint64]


@dataclass(slots=True)
class KeyTable:
    """Known keys. Number 0 means none; ``names[k]`` is the name of key ``k``."""

    names: list[str] = field(default_factory=lambda: [""])
    _slots: IntArray = field(default_factory=lambda: np.zeros(64, np.int64))
    _hashes: Word = field(default_factory=lambda: np.zeros(16, np.uint64))
    _lengths: IntArray = field(default_factory=lambda: np.zeros(16, np.int64))
    _words: Word = field(default_factory=lambda: np.zeros((16, 4), np.uint64))

    def find(self, data: ByteArray, at: IntArray, length: IntArray) -> tuple[IntArray, BoolArray]:
        """Number of every key ``data[at : at + length]``, and whether it is known for certain. Shapes (keys,)."""
        taken = (length > 0) & (length <= 8 * MAX_KEY_WORDS)
        length = np.where(taken, length, 0)
        texts = self._read(data, at, length)
        total = length.astype(np.uint64) * _FACTORS[-1]
        for i, word in enumerate(texts):
            total += word * _FACTORS[i]
        number = self._lookup(total)
        new = np.flatnonzero(taken & (number == 0))
        if len(new):
            for i in new[np.unique(total[new], return_index=True)[1]].tolist():
                self._insert(total[i], data[at[i] : at[i] + length[i]].tobytes(), np.array([w[i] for w in texts], np.uint64))
            number = self._lookup(total)
        same = taken & (number > 0) & (self._lengths[number] == length)
        for i, word in enumerate(texts[: self._words.shape[1]]):
            same &= self._words[number, i] == word
        return number, same

    def _read(self, data: ByteArray, at: IntArray, length: IntArray) -> list[Word]:
        """The keys as words, zero past their end: a list over the word, arrays over the keys."""
        eight = words(data, 8)
        longest = int(length.max(initial=0))
        return [eight[at + i].view("<u8") & _KEEP[length + (8 * MAX_KEY_WORDS - i)] for i in range(0, longest, 8)]

    def _lookup(self, total: Word) -> IntArray:
        size = len(self._slots)
        slot = (total >> np.uint64(40)).astype(np.int64) & (size - 1)
        number: IntArray = self._slots[slot]
        while len(wrong := np.flatnonzero((number > 0) & (self._hashes[number] != total))):
            slot[wrong] = (slot[wrong] + 1) & (size - 1)
            number[wrong] = self._slots[slot[wrong]]
        return number

    def _insert(self, total: np.uint64, span: bytes, texts: Word) -> None:
        number = len(self.names)
        if number > MAX_KEYS:
            return
        self.names.append(_name(span))
        if number >= len(self._hashes) or len(texts) > self._words.shape[1]:
            self._grow(max(number + 1, len(self._hashes)), max(len(texts), self._words.shape[1]))
        self._hashes[number] = total
        self._lengths[number] = len(span)
        self._words[number, : len(texts)] = texts
        self._place(number)

    def _grow(self, count: int, width: int) -> None:
        """Room for ``count`` keys, rounded up, of ``width`` words each; four slots for every key."""
        size = 1 << (count - 1).bit_length()
        grown = np.zeros((size, width), np.uint64)
        grown[: len(self._words), : self._words.shape[1]] = self._words
        self._words = grown
        self._hashes = np.append(self._hashes, np.zeros(size - len(self._hashes), np.uint64))
        self._lengths = np.append(self._lengths, np.zeros(size - len(self._lengths), np.int64))
        self._slots = np.zeros(4 * size, np.int64)
        for number in range(1, len(self.names) - 1):
            self._place(number)

    def _place(self, number: int) -> None:
        slot = int(self._hashes[number] >> np.uint64(40)) & (len(self._slots) - 1)
        while self._slots[slot]:
            slot = (slot + 1) & (len(self._slots) - 1)
        self._slots[slot] = number


def _name(span: bytes) -> str:
    try:
        return wire.item(span).name
    except wire.MalformedError:
        return ""
