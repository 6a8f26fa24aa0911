"""Whether a curve repeats itself, with what period, and from where on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from forensics.model import FloatArray
from forensics.primitives.robust import LONG, MAD_TO_SD, block_medians, block_size, centred_median, slow_median

FEWEST = 80
"""Shorter curves show no period that could be told from chance."""

CYCLES = 6
"""A period must come this many times."""

HEIGHT = 0.5
"""Autocorrelation at the period (catalogue)."""

AGAIN = 0.6
"""Share of it that must be left at twice the period: noise that is merely correlated has lost it by then."""

NEAREST = 3
"""Shortest period in points."""

OUTLIER = 4.0
"""Values are cut at this many sds, so that a few spikes do not hide the period."""

HERE = 0.5
"""Share of the height that a stretch must have to be part of it."""

STRETCH_CYCLES = 3
"""Periods of the stretches in which its beginning is looked for."""

STRETCH_POINTS = 150
"""... and their points: fewer are alike or not by chance."""


@dataclass(frozen=True, slots=True)
class Period:
    """``points`` of one cycle; autocorrelation ``height`` at it; ``first`` the index where it begins; ``p_value`` over all lags."""

    points: int
    height: float
    first: int
    swing: float
    p_value: float


def find_period(u: FloatArray) -> Period | None:
    """The period of a curve (points,) around its own slow course, or None. A long curve is looked at in its last LONG points, then on blocks."""
    if len(u) < FEWEST:
        return None
    offset = max(0, len(u) - LONG)
    found = _period(u[offset:], 0)
    if found is not None or not offset:
        return found if found is None or not offset else _moved(found, 1, offset)
    size = block_size(len(u), LONG // 8)
    found = _period(block_medians(u, size), 0)
    return None if found is None else _moved(found, size, 0)


def _moved(found: Period, size: int, offset: int) -> Period:
    return Period(found.points * size, found.height, found.first * size + offset, found.swing, found.p_value)


def _period(u: FloatArray, shortest: int) -> Period | None:
    n = len(u)
    longest = n // CYCLES
    x = u - slow_median(u, min(n // 2, 2 * longest) | 1)
    sd = MAD_TO_SD * float(np.median(np.abs(x)))
    if sd <= 0:
        return None
    x = np.clip(x, -OUTLIER * sd, OUTLIER * sd)
    x = x - x.mean()
    spectrum = np.fft.rfft(x, 1 << (2 * n - 1).bit_length())
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[: 2 * longest + 1]
    correlation = correlation / correlation[0] * n / (n - np.arange(len(correlation)))
    lag = np.arange(max(NEAREST, shortest), longest)
    peaks = lag[(correlation[lag] >= correlation[lag - 1]) & (correlation[lag] > correlation[lag + 1])]
    below = np.flatnonzero(correlation < 0.5 * HEIGHT)
    peaks = peaks[peaks > below[0]] if len(below) else peaks[:0]
    if len(peaks) == 0:
        return None
    points = _refined(correlation, int(peaks[np.argmax(correlation[peaks] >= 0.9 * correlation[peaks].max())]))
    height = float(correlation[points])
    if height < HEIGHT or correlation[min(2 * points, len(correlation) - 1)] < AGAIN * height:
        return None
    p_value = min(1.0, float(ndtr(-height * np.sqrt(n / 2.0))) * longest)
    return Period(points, height, _begin(x, points, height), float(np.sqrt(2.0) * x.std() * np.sqrt(height)), p_value)


def _refined(correlation: FloatArray, rough: int) -> int:
    """The period by the highest place near a multiple of the rough one, as far out as is known."""
    multiple = max(1, min(5, int((len(correlation) - 1) / (1.25 * rough))))
    low = int(multiple * rough - 0.25 * rough)
    high = min(len(correlation), int(multiple * rough + 0.25 * rough) + 2)
    return max(NEAREST, round((low + int(np.argmax(correlation[low:high]))) / multiple))


def _begin(x: FloatArray, points: int, height: float) -> int:
    """The first stretch from which all later ones repeat themselves."""
    length = max(STRETCH_CYCLES * points, STRETCH_POINTS)
    count = len(x) // length
    if count < 2:
        return 0
    x = x - centred_median(x, 2 * points + 1)
    rows = x[: count * length].reshape(count, length)
    early, late = rows[:, :-points], rows[:, points:]
    alike = (early * late).sum(axis=1) / np.maximum(np.sqrt((early**2).sum(axis=1) * (late**2).sum(axis=1)), 1e-300)
    silent = np.flatnonzero(alike < HERE * height)
    return 0 if len(silent) == 0 else min(int(silent[-1]) + 1, count - 1) * length
