"""Robust moving statistics, linear in the number of points.

All functions take and return float64 arrays of shape (points,).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import bottleneck as bn
import numpy as np

from forensics.model import FloatArray

MAD_TO_SD = 1.4826
"""Median absolute deviation times this is the standard deviation of a normal sample."""


LONG = 1 << 16
"""Points from which the slow medians are taken over medians of short blocks. They describe a level that hardly moves within a
block; the sampling error grows by a fifth, the cost falls by four fifths."""

PIECE = LONG + LONG // 8
"""Points of the pieces that long series are scored in: their intermediate results stay in the processor's cache."""

STRETCHES, STRETCH = 64, 1024
"""Stretches of a long series, and points of each, that tell the shape of its noise: as many as all of a series of LONG points."""

INNER, COARSE = 16, 256
"""Points of inner blocks, and of the blocks from which medians are taken of their medians."""

FOUR = 4
"""A median of so many points is worth a shortcut: it is needed at every point of every curve."""


def centred_median(values: FloatArray, window: int) -> FloatArray:
    """Median over ``window`` points around each point; shorter at the ends. NaN is ignored."""
    half = window // 2
    padded = np.concatenate([values, np.full(half, np.nan)])
    return _median(padded, 2 * half + 1, 1)[half:]


def trailing_median(values: FloatArray, window: int, min_count: int) -> FloatArray:
    """Median of the ``window`` points before each point, the point itself excluded; NaN where fewer than ``min_count``."""
    moved = _median(values, window, min_count)
    return np.concatenate([[np.nan], moved[:-1]]) if len(values) else moved


def forward_median(values: FloatArray, window: int) -> FloatArray:
    """Median of the ``window`` points from each point on, the point included; shorter at the end."""
    if window == FOUR and len(values) >= LONG:
        return _forward_four(values)
    return _median(values[::-1], window, 1)[::-1]


@dataclass(frozen=True, slots=True)
class Piece:
    """Points ``low`` to ``high`` are this piece's own; ``inner`` is where they lie in ``around``, which has neighbours on both sides."""

    low: int
    high: int
    around: slice
    inner: slice


def pieces(points: int, before: int, after: int) -> Iterator[Piece]:
    """Cut a series into pieces that overlap; a series of at most PIECE points is one piece."""
    low = 0
    while low < points:
        high = points if points - low <= PIECE else low + LONG
        first, last = max(0, low - before), min(points, high + after)
        yield Piece(low, high, slice(first, last), slice(low - first, high - first))
        low = high


def slow_median(values: FloatArray, window: int) -> FloatArray:
    """As ``centred_median``, of long series only nearly: medians of block medians, joined by straight lines. Without NaN."""
    if len(values) < max(LONG, 2 * window):
        return centred_median(values, window)
    block = math.isqrt(window) | 1
    level = centred_median(block_medians(values, block), window // block | 1)
    share = np.arange(block) / block
    between = (level[:-1, None] + np.diff(level)[:, None] * share).ravel()
    out = np.empty(len(values))
    half = block // 2
    out[:half], out[half : half + len(between)], out[half + len(between) :] = level[0], between, level[-1]
    return out


def slow_trailing(values: FloatArray, window: int, min_count: int) -> FloatArray:
    """As ``trailing_median``, of long series only nearly: the median of three blocks that end up to a block before the point."""
    if len(values) < max(LONG, 2 * window):
        return trailing_median(values, window, min_count)
    block = max(window // 3, 1)
    parts = block_medians(values, block)
    one, two, three = parts[:-2], parts[1:-1], parts[2:]
    middle = np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))
    out = np.empty(len(values))
    out[: 3 * block] = trailing_median(values[: 3 * block], window, min_count)
    rest = len(values) - 3 * block
    out[3 * block :] = np.repeat(middle, block)[:rest]
    return out


def around_slow_course(values: FloatArray, window: int) -> FloatArray:
    """A sample of the values around their moving median: all of a short series, STRETCHES of a long one. NaN is ignored."""
    sample = stretches(values)
    return sample - centred_median(sample, window)


def stretches(values: FloatArray) -> FloatArray:
    """All of a short series; of a long one STRETCHES of STRETCH points, one after the other."""
    if len(values) < LONG:
        return values
    starts = np.linspace(0, len(values) - STRETCH, STRETCHES).astype(np.int64)
    sample: FloatArray = values[(starts[:, None] + np.arange(STRETCH)).ravel()]
    return sample


def block_medians(values: FloatArray, block: int) -> FloatArray:
    """Medians of consecutive blocks; what does not fill a block is left out. Sorting rows is faster than partitioning them.

    Blocks of at least COARSE points, a multiple of INNER, are taken as medians of medians.
    """
    if block >= COARSE and block % INNER == 0:
        return block_medians(block_medians(values, INNER), block // INNER)
    rows = np.sort(values[: len(values) // block * block].reshape(-1, block), axis=1)
    medians: FloatArray = rows[:, block // 2].copy() if block % 2 else 0.5 * (rows[:, block // 2 - 1] + rows[:, block // 2])
    return medians


def block_size(points: int, blocks: int) -> int:
    """Points of a block when a series is to be seen in about so many blocks; a multiple of INNER where blocks are long."""
    size = max(1, points // blocks)
    return size if size < COARSE else size // INNER * INNER


def _forward_four(values: FloatArray) -> FloatArray:
    first, second, third, fourth = values[:-3], values[1:-2], values[2:-1], values[3:]
    low = np.maximum(np.minimum(first, second), np.minimum(third, fourth))
    high = np.minimum(np.maximum(first, second), np.maximum(third, fourth))
    return np.concatenate([0.5 * (low + high), _median(values[:-4:-1], FOUR, 1)[::-1]])


def local_sd(residual: FloatArray, window: int) -> FloatArray:
    """Standard deviation around each point by the median of absolute residuals; shorter windows at the ends."""
    return MAD_TO_SD * slow_median(np.abs(residual), window)


def mad_sd(values: FloatArray) -> float:
    """Standard deviation of a sample by its median absolute deviation; 0 for an empty sample."""
    if len(values) == 0:
        return 0.0
    return float(MAD_TO_SD * np.nanmedian(np.abs(values - np.nanmedian(values))))


def _median(values: FloatArray, window: int, min_count: int) -> FloatArray:
    if len(values) == 0:
        return values.astype(np.float64)
    window = max(1, min(window, len(values)))
    result: FloatArray = bn.move_median(values, window=window, min_count=min(min_count, window))
    return result
