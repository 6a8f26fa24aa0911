"""Robust moving statistics, linear in the number of points.

All functions take and return float64 arrays of shape (points,).
"""

from __future__ import annotations

import bottleneck as bn
import numpy as np

from forensics.model import FloatArray

MAD_TO_SD = 1.4826
"""Median absolute deviation times this is the standard deviation of a normal sample."""


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
    return _median(values[::-1], window, 1)[::-1]


def local_sd(residual: FloatArray, window: int) -> FloatArray:
    """Standard deviation around each point by the median of absolute residuals; shorter windows at the ends."""
    return MAD_TO_SD * centred_median(np.abs(residual), window)


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
