"""CRC-32C as TFRecord files use it: one buffer at a time, or the rows of a matrix together.

The register is linear over GF(2): ``crc(data) = raw(data) ^ crc(zeros of the same length)``, where ``raw`` starts from
zero and therefore ignores leading zero bytes. Rows of different lengths can so share one matrix, aligned at their ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint32]

POLYNOMIAL = 0x82F63B78
"""Castagnoli, bit-reversed."""

MASK_DELTA = 0xA282EAD8
"""TFRecord stores checksums rotated by 15 bits plus this, so that a record may hold records."""

BLOCK_ROWS = 8192
"""Rows taken together: the state vectors and the two tables then stay in the second-level cache."""

SCALAR_BYTES = 256
"""Below this a loop over bytes is faster than setting up a matrix."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """Effect of the two halves of a state, four bytes on; each (65536,)."""

    low: Words
    high: Words


def masked(crc: int) -> int:
    """The stored form of a checksum."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF


def masked_rows(crc: Words) -> Words:
    """The stored form of many checksums, (n,) uint32."""
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(MASK_DELTA)


def crc32c(data: bytes | memoryview) -> int:
    """CRC-32C of one buffer."""
    size = len(data)
    if size < SCALAR_BYTES:
        table = _byte_table()
        state = 0xFFFFFFFF
        for byte in data:
            state = table[(state ^ byte) & 255] ^ (state >> 8)
        return state ^ 0xFFFFFFFF
    lane = 256 if size <= 1 << 16 else 4096
    lanes = -(-size // lane)
    padded = np.zeros(lanes * lane, np.uint8)
    padded[lanes * lane - size :] = np.frombuffer(data, np.uint8)
    states = raw_rows(padded.view("<u4").reshape(lanes, lane // 4))
    doublings = lane.bit_length() - 1
    while len(states) > 1:
        if len(states) % 2:
            states = np.concatenate([np.zeros(1, np.uint32), states])
        states = _advance_rows(states[0::2], doublings) ^ states[1::2]
        doublings += 1
    return int(states[0]) ^ zeros_crc(size)


def raw_rows(words: Words) -> Words:
    """The register after each row, started from zero. (n, words) little-endian uint32 -> (n,) uint32."""
    tables = _word_tables()
    out = np.empty(len(words), np.uint32)
    for first in range(0, len(words), BLOCK_ROWS):
        block = words[first : first + BLOCK_ROWS]
        state = np.zeros(len(block), np.uint32)
        for column in range(block.shape[1]):
            state ^= block[:, column]
            state = tables.low.take(state & np.uint32(0xFFFF)) ^ tables.high.take(state >> np.uint32(16))
        out[first : first + BLOCK_ROWS] = state
    return out


@lru_cache(maxsize=1 << 14)
def zeros_crc(size: int) -> int:
    """CRC-32C of ``size`` zero bytes, by powers of the one-byte step."""
    state = 0xFFFFFFFF
    power = 0
    while size:
        if size & 1:
            state = _apply(_step(power), state)
        size >>= 1
        power += 1
    return state ^ 0xFFFFFFFF


@cache
def _byte_table() -> tuple[int, ...]:
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


@cache
def _word_tables() -> _Tables:
    byte_table = np.array(_byte_table(), np.uint32)
    states = np.concatenate([np.arange(65536, dtype=np.uint32), np.arange(65536, dtype=np.uint32) << np.uint32(16)])
    for _ in range(4):
        states = byte_table[states & np.uint32(255)] ^ (states >> np.uint32(8))
    return _Tables(states[:65536].copy(), states[65536:].copy())


@cache
def _step(power: int) -> tuple[int, ...]:
    """The 32 columns of the matrix that moves a state over 2**power zero bytes."""
    if power == 0:
        table = _byte_table()
        return tuple(table[(1 << bit) & 255] ^ ((1 << bit) >> 8) for bit in range(32))
    half = _step(power - 1)
    return tuple(_apply(half, column) for column in half)


def _apply(matrix: tuple[int, ...], state: int) -> int:
    out = 0
    bit = 0
    while state:
        if state & 1:
            out ^= matrix[bit]
        state >>= 1
        bit += 1
    return out


def _advance_rows(states: Words, power: int) -> Words:
    out = np.zeros(len(states), np.uint32)
    for bit, column in enumerate(_step(power)):
        out ^= np.where(states >> np.uint32(bit) & np.uint32(1), np.uint32(column), np.uint32(0))
    return out
