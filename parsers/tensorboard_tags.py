"""Numbers for tags: which tag stands in each row of a matrix, by hash first and by every byte after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forensics.model import IntArray
from forensics.parsers.tensorboard_groups import Rows

MAX_TAGS = 65_534
"""More tags than the collector takes; the numbers fit 16 bits, which sort in linear time."""

OVERFLOW = 65_535
"""Number of every tag past MAX_TAGS."""

SPARSE = 16
"""Hash slots per known tag: nearly every tag then has a slot of its own."""

_Hashes: TypeAlias = NDArray[np.uint64]
_ODD = np.array([pow(0x9E3779B97F4A7C15, 2 * k + 1, 1 << 64) for k in range(64)], np.uint64)
"""Odd multipliers: powers of an odd number, which spares the import of numpy.random."""


@dataclass(slots=True)
class _Index:
    """The known tags of one length: their hashes, numbers and bytes (as 8-byte columns), and the hash slots."""

    hashes: _Hashes
    numbers: IntArray
    columns: list[_Hashes]
    slots: IntArray
    shift: np.uint64


class _Unknown(NamedTuple):
    """Rows whose tag no slot gave: the tag bytes, 8-byte columns and hashes of all rows, and which rows these are."""

    tags: Rows
    columns: list[_Hashes]
    hashes: _Hashes
    rows: IntArray


@dataclass(slots=True)
class Tags:
    """Every tag seen so far. Integer and float values of one tag count as two."""

    names: list[tuple[bytes, bool]] = field(default_factory=list)
    _numbers: dict[tuple[bytes, bool], int] = field(default_factory=dict)
    _indexes: dict[tuple[int, bool], _Index] = field(default_factory=dict)

    def number(self, tag: bytes, is_int: bool) -> int:
        """The number of one tag."""
        known = self._numbers.get((tag, is_int))
        if known is None:
            if len(self.names) >= MAX_TAGS:
                return OVERFLOW
            known = self._numbers[tag, is_int] = len(self.names)
            self.names.append((tag, is_int))
        return known

    def numbers(self, rows: Rows, start: int, stop: int, is_int: bool) -> IntArray:
        """The number of the tag in bytes ``start:stop`` of each row (n, width) -> (n,). Needs ``stop`` >= 8."""
        columns = _columns(rows, start, stop)
        hashes = _hash(columns)
        index = self._indexes.get((stop - start, is_int))
        if index is None:
            index = self._indexes[stop - start, is_int] = _Index(
                np.empty(0, np.uint64), np.empty(0, np.int64), [np.empty(0, np.uint64) for _ in columns], np.full(2, -1), np.uint64(63)
            )
        out = np.zeros(len(rows), np.int64)
        known = np.zeros(len(rows), np.bool_)
        if len(index.hashes):
            local = index.slots[hashes >> index.shift]
            out = index.numbers[local]
            known = local >= 0
            for part, reference in zip(columns, index.columns, strict=True):
                known &= part == reference[local]
        if not known.all():
            self._learn(index, _Unknown(rows[:, start:stop], columns, hashes, np.flatnonzero(~known)), is_int, out)
        return out

    def _learn(self, index: _Index, unknown: _Unknown, is_int: bool, out: IntArray) -> None:
        """Number the rows that had no slot of their own, and give new tags a slot."""
        rows, tags = unknown.rows, unknown.tags
        unique, first, inverse = np.unique(unknown.hashes[rows], return_index=True, return_inverse=True)
        leaders = rows[first]
        numbers = np.array([self.number(tags[row].tobytes(), is_int) for row in leaders.tolist()], np.int64)
        out[rows] = numbers[inverse]
        same = np.ones(len(rows), np.bool_)
        for part in unknown.columns:
            same &= part[rows] == part[leaders][inverse]
        for row in rows[~same].tolist():  # two tags, one hash
            out[row] = self.number(tags[row].tobytes(), is_int)
        new = ~np.isin(unique, index.hashes) & (numbers != OVERFLOW)
        if not new.any():
            return
        index.hashes = np.concatenate([index.hashes, unique[new]])
        index.numbers = np.concatenate([index.numbers, numbers[new]])
        index.columns = [np.concatenate([old, part[leaders[new]]]) for old, part in zip(index.columns, unknown.columns, strict=True)]
        bits = max(1, (SPARSE * len(index.hashes)).bit_length())
        index.shift = np.uint64(64 - bits)
        index.slots = np.full(1 << bits, -1, np.int64)
        index.slots[index.hashes >> index.shift] = np.arange(len(index.hashes))


def column(rows: Rows, position: int, code: str) -> NDArray[np.generic]:
    """The numbers of type ``code`` at byte ``position`` of each row, a view (n,)."""
    return np.ndarray((len(rows),), code, rows, position, (rows.strides[0],))


def _columns(rows: Rows, start: int, stop: int) -> list[_Hashes]:
    """The tag bytes as 8-byte numbers; the last one overlaps, a short tag is shifted free of what precedes it."""
    size = stop - start
    last = column(rows, stop - 8, "<u8").astype(np.uint64)
    if size < 8:
        return [last >> np.uint64(8 * (8 - size))]
    return [column(rows, at, "<u8").astype(np.uint64) for at in range(start, stop - 8, 8)] + [last]


def _hash(columns: list[_Hashes]) -> _Hashes:
    hashes = np.zeros(len(columns[0]), np.uint64)
    for position, part in enumerate(columns):
        hashes ^= part
        hashes *= _ODD[position % len(_ODD)]
        hashes ^= hashes >> np.uint64(29)
    hashes *= _ODD[-1]
    return hashes
