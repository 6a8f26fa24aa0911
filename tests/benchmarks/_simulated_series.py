"""Simulated series for the changepoint study: 24 kinds without a change, 8 kinds with one to five."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]
Random = np.random.Generator


def correlated(rng: Random, n: int, phi: float) -> Array:
    """Stationary first-order autoregressive noise of variance 1."""
    return np.asarray(lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.standard_normal(n + 200))[200:], dtype=np.float64)


def _filtered(noise: Array, phi: float) -> Array:
    return np.asarray(lfilter([1.0], [1.0, -phi], noise), dtype=np.float64)


def _bend(rng: Random, n: int) -> Array:
    """A smooth curve from 0 to 1 or back: quadratic, exponential, logistic or logarithmic."""
    x = np.arange(n) / n
    shapes = (
        lambda: x**2,
        lambda: np.exp(rng.uniform(1, 4) * x),
        lambda: 1 / (1 + np.exp(-(x - rng.uniform(0.3, 0.7)) * rng.uniform(4, 12))),
        lambda: np.log(x + rng.uniform(0.02, 0.3)),
    )
    curve = shapes[int(rng.integers(4))]()
    return np.asarray((curve - curve.min()) / np.ptp(curve) * rng.choice([-1, 1]), dtype=np.float64)


def _decay(rng: Random, n: int) -> Array:
    """A training curve: power law or exponential."""
    x = np.arange(n) / n
    shape = (1 + x / rng.uniform(0.002, 0.05)) ** -rng.uniform(0.3, 1.0) if rng.random() < 0.5 else np.exp(-x / rng.uniform(0.03, 0.4))
    return np.asarray(shape * rng.uniform(5, 200), dtype=np.float64)


def _walk(rng: Random, n: int) -> Array:
    return np.cumsum(rng.standard_normal(n))


def _cycle(rng: Random, n: int, size: float, periods: tuple[int, ...] = (4, 6, 12, 24)) -> Array:
    period = min(int(rng.choice(periods)), n // 6)
    return np.tile(rng.standard_normal(period) * rng.uniform(1, size), n // period + 1)[:n]


def _ramp(rng: Random, n: int) -> Array:
    return rng.uniform(-30, 30) * np.arange(n) / n


NULLS: dict[str, Callable[[Random, int], Array]] = {
    "white": lambda r, n: r.standard_normal(n),
    "student 3": lambda r, n: r.standard_t(3, n),
    "counts": lambda r, n: r.poisson(r.uniform(0.5, 20), n).astype(np.float64),
    "growing noise": lambda r, n: r.standard_normal(n) * np.exp(r.uniform(-1.5, 1.5) * np.arange(n) / n) + _ramp(r, n),
    "ar .1-.5": lambda r, n: correlated(r, n, r.uniform(0.1, 0.5)),
    "ar .5-.8": lambda r, n: correlated(r, n, r.uniform(0.5, 0.8)),
    "ar .9": lambda r, n: correlated(r, n, 0.9),
    "random walk": lambda r, n: np.cumsum(r.standard_normal(n)),
    "walk, drift": lambda r, n: np.cumsum(r.standard_normal(n) + r.uniform(-0.5, 0.5)),
    "walk, student": lambda r, n: _filtered(r.standard_t(3, n), r.uniform(0.9, 1.0)),
    "walk, bursts": lambda r, n: _filtered(r.standard_normal(n) * np.exp(0.7 * correlated(r, n, 0.95)), r.uniform(0.8, 1.0)),
    "walk + white": lambda r, n: np.cumsum(r.standard_normal(n)) * r.uniform(0.05, 0.5) + r.standard_normal(n),
    "integrated ar": lambda r, n: np.cumsum(correlated(r, n, r.uniform(0.3, 0.8)) + r.uniform(-1, 1)),
    "walking slope": lambda r, n: np.cumsum(np.cumsum(correlated(r, n, r.uniform(0, 0.5))) * 0.05 + correlated(r, n, 0.5)),
    "linear": lambda r, n: _ramp(r, n) + correlated(r, n, r.uniform(0, 0.5)),
    "linear, ar .8": lambda r, n: _ramp(r, n) + correlated(r, n, 0.8),
    "curved": lambda r, n: _bend(r, n) * r.uniform(5, 30) + correlated(r, n, r.uniform(0, 0.6)),
    "curved, calm": lambda r, n: _bend(r, n) * r.uniform(100, 1000) + correlated(r, n, r.uniform(0, 0.6)),
    "decay": lambda r, n: _decay(r, n) + correlated(r, n, r.uniform(0, 0.6)),
    "log decay": lambda r, n: np.log(r.uniform(0.5, 4) + _decay(r, n)) + r.uniform(0.003, 0.1) * r.standard_t(5, n),
    "seasonal": lambda r, n: _cycle(r, n, 6) + max(0.0, r.uniform(-40, 40)) * np.arange(n) / n + correlated(r, n, r.uniform(0, 0.6)),
    "growing season": lambda r, n: _cycle(r, n, 6) * (1 + 3 * np.arange(n) / n) + correlated(r, n, r.uniform(0, 0.6)),
    "season + walk": lambda r, n: _cycle(r, n, 6) * (1 + r.uniform(0, 0.01) * _walk(r, n)) + _walk(r, n) * r.uniform(0.1, 1) + _ramp(r, n),
    "rounded": lambda r, n: np.round(correlated(r, n, r.uniform(0, 0.6)) * r.uniform(0.6, 3) + _ramp(r, n) * r.integers(2)),
}
"""Series without a change, at most one line each: random source and length to values."""


def _places(rng: Random, n: int) -> list[int]:
    """One to five places at least a fifteenth of the series, and eight points, apart."""
    gap, count = max(8, n // 15), int(rng.integers(1, 6))
    for _ in range(1000):
        places = np.sort(rng.integers(gap, n - gap, count))
        if count == 1 or np.diff(places).min() >= gap:
            break
        count = max(1, count - int(rng.random() < 0.1))
    return [int(p) for p in places]


def _levels(rng: Random, n: int, places: list[int], low: float = 1.5, high: float = 8.0) -> Array:
    """Jumps of 1.5 to 8 noise sds."""
    y = np.zeros(n)
    for place in places:
        y[place:] += rng.choice([-1, 1]) * np.exp(rng.uniform(np.log(low), np.log(high)))
    return y


def _slopes(rng: Random, n: int, places: list[int], total: float) -> Array:
    """A continuous broken line; ``total`` noise sds over a third of the series at the steepest."""
    slope, steps = rng.uniform(-1, 1), np.empty(n)
    for start, stop in pairwise((0, *places, n)):
        steps[start:stop] = slope
        slope = (slope + rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) + 1) % 2 - 1
    return np.asarray(np.cumsum(steps) * total * 3 / n, dtype=np.float64)


CHANGED: dict[str, Callable[[Random, int, list[int]], Array]] = {
    "level, white": lambda r, n, c: _levels(r, n, c) + r.standard_normal(n),
    "level, ar": lambda r, n, c: _levels(r, n, c) + correlated(r, n, r.uniform(0, 0.7)),
    "level, student": lambda r, n, c: _levels(r, n, c) + r.standard_t(3, n) / 1.7,
    "level, trend": lambda r, n, c: _levels(r, n, c) + _ramp(r, n) + r.standard_normal(n),
    "level, season": lambda r, n, c: _levels(r, n, c) + _cycle(r, n, 4, (4, 6, 12)) + r.standard_normal(n),
    "slope": lambda r, n, c: _slopes(r, n, c, r.uniform(15, 60)) + r.standard_normal(n),
    "slope, calm": lambda r, n, c: _slopes(r, n, c, r.uniform(100, 1000)) + r.standard_normal(n),
    "level + slope": lambda r, n, c: _levels(r, n, c[::2], 2.0) + _slopes(r, n, c[1::2], r.uniform(15, 60)) + correlated(r, n, r.uniform(0, 0.7)),
}
"""Series that change at the given places."""


def series_without(kind: str, seed: int, number: int, n: int) -> Array:
    """A series without a change."""
    rng = np.random.default_rng([seed, number, n, 0])
    return NULLS[kind](rng, n)


def series_with(kind: str, seed: int, number: int, n: int) -> tuple[Array, list[int]]:
    """A series and the places where it changes."""
    rng = np.random.default_rng([seed, number, n, 1])
    places = _places(rng, n)
    return CHANGED[kind](rng, n, places), places
