"""Fewer points of a curve without losing what matters: extremes, broken values, and the whole neighbourhood of events.

Min-max decimation: the curve is cut into buckets of equal point count, and each keeps its lowest and highest point. A
line drawn through them covers the same pixels as the full curve at the overview. Around events nothing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.model import BoolArray, FloatArray, IntArray, NumArray, Series

BUCKETS = 1500
"""About the pixels across a wide screen: a finer overview could not be seen."""

WHOLE_POINTS = 8000
"""Most points kept whole in all windows together, so that a window over half a run cannot undo the thinning."""

WHOLE_START, WHOLE_STOP = 600, 200
"""Points kept whole at the start and end of a window that is too long: the onset is what a reader zooms into."""


def thin(steps: IntArray, values: NumArray, keep: Sequence[tuple[int, int]] = (), buckets: int = BUCKETS) -> Series:
    """Thin a curve of shape (points,) to at most about ``2 * buckets`` points plus windows and broken values.

    ``keep`` lists inclusive step ranges that stay whole (ends and extremes of them where they exceed ``WHOLE_POINTS``).
    Kept always: the first and last point, the minimum and maximum of every bucket, both ends of every stretch of NaN or
    Inf with the finite points beside it. Order is kept, steps may go back. O(n log windows).
    """
    points = len(steps)
    floats = np.asarray(values, dtype=np.float64)
    if points <= 2 * buckets:
        return Series(tuple(steps.tolist()), tuple(floats.tolist()))
    chosen = np.zeros(points, dtype=np.bool_)
    chosen[[0, -1]] = True
    chosen[_extremes(floats, buckets)] = True
    chosen[_broken(floats, buckets)] = True
    chosen[_windows(steps, floats, keep)] = True
    return Series(tuple(steps[chosen].tolist()), tuple(floats[chosen].tolist()))


def _extremes(values: FloatArray, buckets: int) -> IntArray:
    """Indices of the lowest and highest finite point of each bucket."""
    points = len(values)
    if points == 0:
        return np.empty(0, np.int64)
    width = -(-points // buckets)
    rows = -(-points // width)
    finite = np.isfinite(values)
    starts = np.arange(rows, dtype=np.int64) * width
    low = np.full(rows * width, np.inf)
    low[:points] = np.where(finite, values, np.inf)
    high = np.full(rows * width, -np.inf)
    high[:points] = np.where(finite, values, -np.inf)
    found: IntArray = np.concatenate((starts + low.reshape(rows, width).argmin(axis=1), starts + high.reshape(rows, width).argmax(axis=1)))
    return found[found < points]


def _broken(values: FloatArray, buckets: int) -> IntArray:
    """Indices of the ends of every stretch of one kind of non-finite value, and of the points beside them.

    A curve that flickers between finite and broken all the time keeps the first and last broken point of each bucket.
    """
    code = np.zeros(len(values), dtype=np.int8)
    code[np.isnan(values)] = 1
    code[values == np.inf] = 2
    code[values == -np.inf] = 3
    change = np.flatnonzero(np.diff(code)) + 1
    edges = np.unique(np.concatenate((change - 1, change))).astype(np.int64)
    if len(edges) <= 4 * buckets:
        return edges
    bad = np.flatnonzero(code)
    bucket = bad // -(-len(values) // buckets)
    border = np.flatnonzero(np.diff(bucket))
    return bad[np.concatenate((border, border + 1, [0, len(bad) - 1]))]


def _windows(steps: IntArray, values: FloatArray, keep: Sequence[tuple[int, int]]) -> IntArray:
    """Indices of the points inside the step ranges."""
    if not keep:
        return np.empty(0, np.int64)
    first, last = _merged(keep)
    window = np.searchsorted(first, steps, side="right") - 1
    inside: BoolArray = (window >= 0) & (steps <= last[np.maximum(window, 0)])
    index = np.flatnonzero(inside)
    if len(index) <= WHOLE_POINTS:
        return index
    parts = [index[_extremes(values[index], WHOLE_POINTS // 4)]]
    for number in range(len(first)):
        own = index[window[index] == number]
        parts += [own[:WHOLE_START], own[-WHOLE_STOP:]]
    return np.concatenate(parts)


def _merged(keep: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """Disjoint ascending ranges that cover the same steps: their first and last steps."""
    first: list[int] = []
    last: list[int] = []
    for low, high in sorted((min(pair), max(pair)) for pair in keep):
        if last and low <= last[-1]:
            last[-1] = max(last[-1], high)
        else:
            first.append(low)
            last.append(high)
    return np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)
