"""Three published or common alarm rules, computed on the same runs as ours, so that a score has something beside it.

Each takes a run and returns the steps at which it would have alarmed, one per cluster of alarms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forensics.model import Absent, FloatArray, IntArray, Run
from forensics.primitives.robust import MAD_TO_SD, trailing_median
from forensics.vocabulary import Role

CLUSTER_POINTS = 20
"""Alarms this close together, in logged points, are one alarm: the same courtesy that our own events get."""


def olmo_monitor(run: Run) -> list[int]:
    """Value above mean + 6 standard deviations of the last 128, on loss or gradient norm (OLMo-core's stability monitor)."""
    return sorted({step for role in (Role.LOSS, Role.GRAD_NORM) for step in _alarms(run, role, _six_sd)})


def robust_z(run: Run) -> list[int]:
    """Loss above the median of the last 100 by six robust standard deviations."""
    return _alarms(run, Role.LOSS, _mad)


def twice_the_median(run: Run) -> list[int]:
    """Loss above twice the median of the last 100, or not finite (the rule of loss-spike callbacks)."""
    return _alarms(run, Role.LOSS, lambda x: x > 2 * trailing_median(x, 100, 20))


RULES: tuple[tuple[str, Callable[[Run], list[int]]], ...] = (
    ("mean + 6 sd / 128 (OLMo)", olmo_monitor),
    ("median + 6 MAD / 100", robust_z),
    ("2 x median / 100", twice_the_median),
)


def _alarms(run: Run, role: Role, rule: Callable[[FloatArray], np.ndarray[tuple[int], np.dtype[np.bool_]]]) -> list[int]:
    signal = run.signal(role)
    if isinstance(signal, Absent):
        return []
    curve = signal.curve()
    finite = np.isfinite(curve.values)
    high = np.zeros(len(curve), dtype=bool)
    if finite.sum() > 1:
        with np.errstate(invalid="ignore", over="ignore"):
            high[finite] = rule(curve.values[finite])
    return _clusters(curve.steps, high | ~finite)


def _six_sd(x: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    window = 128
    if len(x) <= window // 2:
        return np.zeros(len(x), dtype=bool)
    size = np.minimum(np.arange(len(x)), window)
    shifted = x - np.median(x)
    total, squares = np.concatenate([[0.0], np.cumsum(shifted)]), np.concatenate([[0.0], np.cumsum(shifted**2)])
    index = np.arange(len(x))
    count = np.maximum(size, 1)
    mean = (total[index] - total[index - size]) / count
    variance = np.maximum((squares[index] - squares[index - size]) / count - mean**2, 0.0)
    high: np.ndarray[tuple[int], np.dtype[np.bool_]] = (shifted > mean + 6 * np.sqrt(variance)) & (size >= window // 2)
    return high


def _mad(x: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    middle = trailing_median(x, 100, 30)
    spread = MAD_TO_SD * trailing_median(np.abs(x - middle), 100, 30)
    high: np.ndarray[tuple[int], np.dtype[np.bool_]] = x > middle + 6 * spread
    return high


def _clusters(steps: IntArray, high: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    at = np.flatnonzero(high)
    if len(at) == 0:
        return []
    first = np.concatenate([[True], np.diff(at) > CLUSTER_POINTS])
    return [int(step) for step in steps[at[first]]]
