"""Checksums of many records at once: records of equal length become the rows of a matrix, the others share padded ones."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers.tensorboard_crc import Words, crc32c, masked, masked_rows, raw_rows, zeros_crc

Rows: TypeAlias = NDArray[np.uint8]

MIN_GROUP = 8
"""From this many records of equal length on, one matrix is cheaper than single records."""

MATRIX_BYTES = 4096
"""Payloads up to this length are checked as rows of a matrix; longer ones only where there are many of a length."""

LARGEST_ROW = 65_000
"""Payloads past this length always stand alone."""

ROWS_PER_BYTE = 1 / 64
"""Records of a long length that make a matrix worth while: its cost is per column."""

_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Sound records of one length. ``rows`` (n, padding + length + 4), payload at ``padding : padding + length``."""

    records: IntArray
    rows: Rows
    padding: int
    length: int


@dataclass(slots=True)
class Checked:
    """Sound records, in groups and as (record, payload), and the numbers of those whose payload fails its checksum."""

    groups: list[Group] = field(default_factory=list)
    singles: list[tuple[int, bytes]] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)

    def merge(self, later: Checked) -> None:
        """Take in the records that follow these."""
        self.groups += later.groups
        self.singles += later.singles
        self.bad += later.bad


def collect(buffer: bytes, numbers: IntArray, starts: IntArray, lengths: IntArray) -> Checked:
    """Check the payloads and sort them into groups of equal length and single records."""
    checked = Checked()
    if not len(starts):
        return checked
    short = np.minimum(lengths, LARGEST_ROW + 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    cuts = np.flatnonzero(np.diff(short[order])) + 1
    rest: list[IntArray] = []
    for members in np.split(order, cuts):
        length = int(lengths[members[0]])
        fewest = MIN_GROUP if length <= MATRIX_BYTES else length * ROWS_PER_BYTE
        if len(members) < fewest or length > LARGEST_ROW or length == 0:
            rest.append(members)
            continue
        group = _group(buffer, numbers[members], starts[members], length, checked)
        if len(group.records):
            checked.groups.append(group)
    if rest:
        single = np.sort(np.concatenate(rest))
        sound = _check_singles(buffer, starts[single], lengths[single])
        checked.bad.extend(numbers[single[~sound]].tolist())
        for index in single[sound].tolist():
            checked.singles.append((int(numbers[index]), buffer[starts[index] : starts[index] + lengths[index]]))
    checked.bad.sort()
    return checked


def _group(buffer: bytes, numbers: IntArray, starts: IntArray, length: int, checked: Checked) -> Group:
    padding = -length % 4
    rows = gather(buffer, starts - padding, padding + length + 4)
    rows[:, :padding] = 0
    words = rows.view("<u4")
    sound = masked_rows(raw_rows(words[:, :-1]) ^ np.uint32(zeros_crc(length))) == words[:, -1]
    if not sound.all():
        checked.bad.extend(numbers[~sound].tolist())
        numbers, rows = numbers[sound], rows[sound]
    return Group(numbers, rows, padding, length)


def _check_singles(buffer: bytes, starts: IntArray, lengths: IntArray) -> BoolArray:
    """Checksums of records of many lengths: a matrix for each quarter of an octave, aligned at the ends."""
    sound = np.zeros(len(starts), np.bool_)
    alone = (lengths > MATRIX_BYTES) | (lengths < 4)
    bucket = np.floor(4 * np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for key in np.unique(bucket[~alone]).tolist():
        members = np.flatnonzero((bucket == key) & ~alone)
        width = 4 * -(-int(lengths[members].max()) // 4)
        begin = starts[members] + lengths[members] - width
        if len(members) < MIN_GROUP or int(begin.min()) < 0:
            alone[members] = True
            continue
        rows = gather(buffer, begin, width + 4)
        rows[:, :width][np.arange(width) < (width - lengths[members])[:, None]] = 0
        words = rows.view("<u4")
        zeros = np.array([zeros_crc(n) for n in lengths[members].tolist()], np.uint32)
        sound[members] = masked_rows(raw_rows(words[:, :-1]) ^ zeros) == words[:, -1]
    for index in np.flatnonzero(alone).tolist():
        sound[index] = payload_sound(buffer, int(starts[index]), int(starts[index] + lengths[index]))
    return sound


def payload_sound(buffer: bytes, start: int, stop: int) -> bool:
    """Whether the checksum that follows ``buffer[start:stop]`` is its own."""
    return masked(crc32c(memoryview(buffer)[start:stop])) == int(_CRC.unpack_from(buffer, stop)[0])


def gather(buffer: bytes, begin: IntArray, size: int) -> Rows:
    """The ``size`` bytes from each position, (n, size). One opaque item per row is copied at once."""
    items = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, 0, (1,))
    return items[begin].view(np.uint8).reshape(len(begin), size)


def u32_at(buffer: bytes, at: IntArray) -> Words:
    """The 32-bit numbers at these positions, (n,)."""
    return gather(buffer, at, 4).view("<u4").reshape(-1) if len(at) else np.empty(0, np.uint32)


def u64_at(buffer: bytes, at: IntArray) -> NDArray[np.uint64]:
    """The 64-bit numbers at these positions, (n,)."""
    return gather(buffer, at, 8).view("<u8").reshape(-1) if len(at) else np.empty(0, np.uint64)
