"""The part of a series that repeats with a period, and the series without it."""

from __future__ import annotations

import numpy as np

from forensics.model import FloatArray
from forensics.primitives.robust import MAD_TO_SD, centred_median

CYCLES = 4
"""A period must come this many times."""

PERIODIC, PERIODIC_AGAIN = 0.3, 0.6
"""Autocorrelation of the differences at the period, and share of it that must be left at twice the period."""

OUTLIER = 4.0
"""Differences are cut at this many sds, so that a few jumps do not hide the period."""


def without_season(y: FloatArray) -> FloatArray:
    """The series (points,) without its season; unchanged where no period stands out."""
    period = _period(y)
    return y if period is None else y - _season(y, period)


def _period(y: FloatArray) -> int | None:
    """The shortest lag at which the differences repeat themselves, or None."""
    steps = np.diff(y)
    n = len(steps)
    if n < 6 * CYCLES:
        return None
    steps = steps - np.median(steps)
    sd = MAD_TO_SD * float(np.median(np.abs(steps)))
    if sd > 0:
        steps = np.clip(steps, -OUTLIER * sd, OUTLIER * sd)
    steps = steps - steps.mean()
    spectrum = np.fft.rfft(steps, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[: n // CYCLES + 1]
    if correlation[0] <= 0:
        return None
    correlation = correlation / correlation[0] * n / (n - np.arange(len(correlation)))
    lag = np.arange(3, len(correlation) - 1)
    peaks = lag[(correlation[lag] >= correlation[lag - 1]) & (correlation[lag] >= correlation[lag + 1])]
    if len(peaks) == 0:
        return None
    period = int(peaks[np.argmax(correlation[peaks] >= 0.85 * correlation[peaks].max())])
    height = float(correlation[period])
    again = 2 * period >= len(correlation) or correlation[2 * period] >= PERIODIC_AGAIN * height
    return period if height >= max(PERIODIC, 4.0 / np.sqrt(n)) and again and CYCLES * period <= len(y) else None


def _season(y: FloatArray, period: int) -> FloatArray:
    """The repeating part, which may slowly change: of each phase the running median over seven cycles, smoothed over three."""
    away = y - _moving_mean(y, period)
    season = np.empty(len(y))
    for phase in range(period):
        part = centred_median(away[phase::period], 7)
        season[phase::period] = np.convolve(np.pad(part, 1, "edge"), np.ones(3) / 3.0, "valid")
    return season


def _moving_mean(y: FloatArray, period: int) -> FloatArray:
    """Mean over one period around each point, continued at its own slope at both ends."""
    window: FloatArray = np.ones(period + 1 - period % 2)
    if period % 2 == 0:
        window[0] = window[-1] = 0.5
    mean = np.convolve(y, window / window.sum(), "valid")
    half, far = len(window) // 2, min(len(mean) - 1, period)
    head = mean[0] + np.arange(-half, 0) * (mean[far] - mean[0]) / max(far, 1)
    tail = mean[-1] + np.arange(1, half + 1) * (mean[-1] - mean[-1 - far]) / max(far, 1)
    return np.concatenate([head, mean, tail])
