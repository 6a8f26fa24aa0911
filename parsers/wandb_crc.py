"""CRC-32 arithmetic: what the register of a whole block must be if the checksums of all its chunks hold.

A call of ``zlib.crc32`` per chunk costs ten times what the checksum itself costs. The CRC is linear, so the stored
checksums of a chain of chunks determine the CRC of the whole chain: it is followed here for many blocks at once, and then
compared with one ``zlib.crc32`` per block. One wrong chunk always makes a difference; several wrong ones cancel out with
probability 2**-32, as within one chunk.

A register is the CRC state without the inversions that zlib adds before and after.
"""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np
from numpy.typing import NDArray

Word = NDArray[np.uint64]
Table = NDArray[np.uint32]

ONES = np.uint32(0xFFFFFFFF)


def register_of(data: memoryview) -> int:
    """The register after ``data``, from zero."""
    return zlib.crc32(data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def after_chunk(register: Table, header: Word, length: NDArray[np.int64]) -> Table:
    """The register after a chunk whose checksum holds, shape (blocks,).

    ``header`` has the chunk's first eight bytes (little endian), ``length`` the bytes its checksum covers. The six bytes
    that are not covered go through the register as they are; the rest enters by its checksum alone.
    """
    checksum = header.astype(np.uint32)
    size = (header >> np.uint64(32)).astype(np.uint16)
    tables = _after_bytes()
    mixed = register ^ checksum
    passed = tables[1][size & 0xFF] ^ tables[0][size >> 8]
    for k in range(4):
        passed ^= tables[5 - k][(mixed >> np.uint32(8 * k)) & np.uint32(0xFF)]
    return _shift(passed ^ ONES, length) ^ checksum ^ ONES


def _shift(register: Table, zeros: NDArray[np.int64]) -> Table:
    """The register after ``zeros`` zero bytes, at most a block."""
    low, high = _after_zeros()
    for table, count in ((low, zeros & 0xFF), (high, zeros >> 8)):
        base = count << 10
        register = (
            table[base + (register & np.uint32(0xFF))]
            ^ table[base + 256 + ((register >> np.uint32(8)) & np.uint32(0xFF))]
            ^ table[base + 512 + ((register >> np.uint32(16)) & np.uint32(0xFF))]
            ^ table[base + 768 + (register >> np.uint32(24))]
        )
    return register


@cache
def _after_bytes() -> tuple[Table, ...]:
    """Table ``k``: the register after a byte and ``k`` zero bytes, by the byte."""
    tables = [np.array([register_of(memoryview(bytes([i]))) for i in range(256)], np.uint32)]
    for _ in range(5):
        tables.append(_step(tables[-1], tables[0]))
    return tuple(tables)


@cache
def _after_zeros() -> tuple[Table, Table]:
    """Flat tables by (count, byte of the register, value of that byte): after 0..255 and after 0, 256, 512... zero bytes."""
    start = (np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]).ravel()
    one = _after_bytes()[0]
    low = [start]
    while len(low) <= 256:
        low.append(_step(low[-1], one))
    far = low.pop()
    high = [start]
    while len(high) <= 128:
        last = high[-1]
        high.append(far[last & 0xFF] ^ far[256 + (last >> 8 & 0xFF)] ^ far[512 + (last >> 16 & 0xFF)] ^ far[768 + (last >> 24)])
    return np.concatenate(low), np.concatenate(high)


def _step(register: Table, one: Table) -> Table:
    """The register after one zero byte."""
    after: Table = one[register & 0xFF] ^ (register >> 8)
    return after
