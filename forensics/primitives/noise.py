"""Where the noise of a curve changes size, and where it begins to swing periodically."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray
from forensics.primitives.robust import LONG, block_medians, centred_median, pieces, slow_median, stretches
from forensics.primitives.tails import Tail

WINDOW = 100
"""Points on either side of a change: enough to know a MAD to 12 %."""

STRIDE = 8
"""Points of a long series that share one look at their noise; the place of a change is then found among single points."""

FEWEST = 25
"""Smallest window used on short runs."""

FACTOR = 1.6
"""Smallest ratio of noise that is reported: below it, ordinary training changes its noise by itself."""

SCORE = 5.0
"""Robust z of the change of log noise."""

SD_OF_LOG_MAD = 1.17
"""Standard deviation of log MAD of w normal points is this over sqrt(w). Heavier tails and correlation only add to it."""

NEAR_MEDIAN = 0.2
"""Relative distance from the median within which the density of sizes is measured."""

LAGS = 20
"""Points over which the sizes of the noise may be correlated."""

LIGHT, TESTS = 30.0, 4.0
"""Degrees of freedom of the score, and independent looks per window."""

CHANCE = 0.01
"""Accepted chance per run that healthy noise of steady size does this."""

STEADY = 1.6
"""Both halves of the window before a change must agree within this factor: a slow growth is not a change."""


PROGRESS = 0.6
"""Share of the descent after which the noise of a healthy run has found its size."""

OWN_FACTOR = 1.3
"""Growth in the signal's own unit that must go with the growth on the comparison scale."""

DESCENT = 4.0
"""A fall over the windows before and after by more than this many new standard deviations is the descent of early training."""


@dataclass(frozen=True, slots=True)
class NoiseChange:
    """``index`` is the first point with the new noise; sds on the comparison scale; ``period`` in points if it swings."""

    index: int
    before: float
    after: float
    score: float
    period: int | None
    p_value: float = 1.0


def find_noise_changes(u: FloatArray, centre: FloatArray, values: FloatArray) -> list[NoiseChange]:
    """Sharp increases of the noise level, in order. ``u``, ``centre`` and ``values`` as in Prepared, shape (points,).

    The noise must grow on the comparison scale and in the signal's own unit: a loss that falls towards zero gets noisier on a
    log scale without getting noisier.
    """
    n = len(u)
    window = min(WINDOW, max(n // 6, min(n // 4, FEWEST)))
    if window < FEWEST:
        return []
    size = np.empty(n)
    for piece in pieces(n, 4 * WINDOW, 4 * WINDOW):
        size[piece.low : piece.high] = np.abs(u[piece.around] - _trend(u[piece.around], centre[piece.around]))[piece.inner]
    stride = 1 if n < LONG else STRIDE
    moved = slow_median(size, window) if stride == 1 else centred_median(block_medians(size, stride), window // stride | 1)
    half = window // 2 // stride
    before = np.concatenate([np.full(half, moved[0]), moved[: len(moved) - half]])
    after = np.concatenate([moved[half:], np.full(half, moved[-1])])
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(after / before)
    change[: window // stride] = 0.0
    change[len(moved) - window // stride :] = 0.0
    score = np.nan_to_num(change, nan=0.0, posinf=0.0, neginf=0.0) / (SD_OF_LOG_MAD * np.sqrt(2.0 / window))
    doubt = _spread_of_log(size, moved, stride) / SD_OF_LOG_MAD
    luck = Tail(np.empty(0), LIGHT)
    found: list[NoiseChange] = []
    blocked = np.zeros(n, dtype=bool)
    for k in _highest(score):
        i = k * stride
        if len(found) >= 20:
            break
        if blocked[i] or change[k] < np.log(FACTOR) or not _steady(size, i, window) or _descending(centre, i, window, float(after[k])):
            continue
        if _early(centre, i) or _own_ratio(values, i, window) < OWN_FACTOR:
            continue
        at = _place(size, i, window)
        if _early(centre, at):
            continue
        period = swing_period(u[at:] - _level(u[at:]))
        p_value = luck.p_value(float(score[k]) / (doubt if period is None else 1.0), TESTS * n / window)
        if p_value > CHANCE or (period is None and _step_ratio(u, at, window) < max(OWN_FACTOR, math.exp(0.5 * float(change[k])))):
            continue  # chance; or a bend or a step of the level, which stands out of the slow course on both sides
        blocked[max(0, i - 2 * window) : i + 2 * window] = True
        scale = 1.4826
        found.append(NoiseChange(at, scale * float(before[k]), scale * float(after[k]), float(score[k]), period, p_value))
    return sorted(found, key=lambda c: c.index)


def _spread_of_log(size: FloatArray, moved: FloatArray, stride: int) -> float:
    """Standard deviation of the log median of one point's worth: from the density of sizes at their median and their correlation."""
    local = stretches(np.repeat(moved, stride)[: len(size)] if stride > 1 else moved)
    own = stretches(size[: len(moved) * stride] if stride > 1 else size)
    good = local > 0
    x = np.minimum(own[good] / local[good], 4.0)
    if len(x) < 4 * LAGS:
        return SD_OF_LOG_MAD
    density = float((np.abs(x - 1.0) <= NEAR_MEDIAN).mean()) / (2.0 * NEAR_MEDIAN)
    sign = np.where(x > 1.0, 0.5, -0.5)
    rho = np.array([float((sign[:-k] * sign[k:]).mean()) * 4.0 for k in range(1, LAGS + 1)])
    chance = np.flatnonzero(rho < 2.0 / math.sqrt(len(x)))
    rho = rho[: chance[0]] if len(chance) else rho
    return max(SD_OF_LOG_MAD, 0.5 / max(density, 0.1)) * math.sqrt(1.0 + 2.0 * float(rho.sum()))


def _step_ratio(u: FloatArray, at: int, window: int) -> float:
    """Size of the steps between neighbours after over before."""
    steps = np.abs(np.diff(u[max(0, at - window) : at + window]))
    middle = min(at, window)
    before, after = float(np.median(steps[: middle - 1])), float(np.median(steps[middle:]))
    return after / before if before > 0 else math.inf


def _highest(score: FloatArray) -> list[int]:
    """The places with the highest scores, the highest first."""
    high = np.flatnonzero(score >= SCORE)
    order: list[int] = high[np.argsort(-score[high], kind="stable")][:200].tolist()
    return order


def swing_period(residual: FloatArray) -> int | None:
    """Period in points where the autocorrelation has a peak above 0.5, or None. Looks at the first 2,000 points."""
    x = residual[:2000]
    n = len(x)
    if n < 40:
        return None
    limit = 4 * float(np.median(np.abs(x)) * 1.4826)
    x = np.clip(x - np.median(x), -limit, limit)
    spectrum = np.fft.rfft(x, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[: n // 2]
    if correlation[0] <= 0:
        return None
    correlation = correlation / correlation[0]
    negative = np.flatnonzero(correlation < 0)
    if len(negative) == 0:
        return None
    rest = correlation[negative[0] :]
    if len(rest) == 0:
        return None
    best = int(np.argmax(rest))
    lag = int(negative[0]) + best
    return lag if rest[best] > 0.5 and lag >= 3 else None


def _level(u: FloatArray) -> FloatArray:
    return np.full(len(u), float(np.median(u)))


def _trend(u: FloatArray, centre: FloatArray) -> FloatArray:
    """The slow part: medians over the baseline window, so that a swing longer than a few points stays in the residual."""
    return slow_median(u, 4 * WINDOW + 1) if len(u) > 20 * WINDOW else centre


def _descending(centre: FloatArray, at: int, window: int, after: float) -> bool:
    """In the first steep descent the noise grows from nothing on every run."""
    return float(centre[max(0, at - window)] - centre[min(at + window, len(centre) - 1)]) > DESCENT * 1.4826 * after


def _early(centre: FloatArray, at: int) -> bool:
    """Less than ``PROGRESS`` of the curve's whole descent lies behind."""
    start, lowest = float(np.median(centre[:5])), float(np.min(centre))
    return start > lowest and start - float(centre[at]) < PROGRESS * (start - lowest)


def _own_ratio(values: FloatArray, at: int, window: int) -> float:
    """Noise after over noise before, in the signal's own unit."""
    reach = 4 * WINDOW + window
    low = max(0, at - reach)
    part = values[low : at + reach]
    size = np.abs(part - centred_median(part, 4 * WINDOW + 1 if len(values) > 20 * WINDOW else 51))
    before = float(np.median(size[max(0, at - low - window) : at - low]))
    after = float(np.median(size[at - low : at - low + window]))
    return after / before if before > 0 else math.inf


def _steady(size: FloatArray, at: int, window: int) -> bool:
    half = window // 2
    first = float(np.median(size[max(0, at - window) : at - half]))
    second = float(np.median(size[at - half : at]))
    return first > 0 and second > 0 and 1 / STEADY < second / first < STEADY


def _place(size: FloatArray, at: int, window: int) -> int:
    """The point that best divides two noise levels (exponential likelihood) within half a window."""
    low, high = max(0, at - window), min(len(size), at + window)
    y = size[low:high] + 1e-12
    m = len(y)
    total = np.cumsum(y)
    k = np.arange(5, m - 5)
    left = total[k - 1] / k
    right = (total[-1] - total[k - 1]) / (m - k)
    cost = k * np.log(left) + (m - k) * np.log(right)
    return low + int(k[np.argmin(cost)])
