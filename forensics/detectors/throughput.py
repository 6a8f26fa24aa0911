"""The run becomes slower at a step and stays slower. The loss does not care, so this is info; it costs time and may mean hardware."""

from __future__ import annotations

import math

import numpy as np

from forensics.model import Event, EventKind, FloatArray, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared
from forensics.primitives.rises import Rise, find_rises
from forensics.vocabulary import Role

NAME = "throughput"

LEAST = math.log(1.04)
"""Slowdown that is reported, in log units (catalogue: 4 %; one slow GPU of a published run cost 5 %)."""

LASTS_POINTS = 50
"""Logged points a slowdown must last: checkpoints and evaluations pause a run for less."""

MOST = 5
"""Slowdowns listed for one run, the first ones: a shared machine has many."""


def detect(curves: Curves) -> list[Event]:
    """Lasting slowdowns, from the step time if it is logged, else from the throughput."""
    times, rate = curves.get(Role.STEP_TIME), curves.get(Role.THROUGHPUT)
    if times is not None and len(times) >= 2 * LASTS_POINTS:
        return _slowdowns(times, times.u)
    if rate is not None and len(rate) >= 2 * LASTS_POINTS:
        return _slowdowns(rate, -rate.u)
    return []


def _slowdowns(signal: Prepared, slowness: FloatArray) -> list[Event]:
    lasting = [r for r in find_rises(slowness, signal.noise) if _lasts(r, len(signal)) and _size(slowness, r) >= LEAST]
    return [_event(signal, slowness, rise) for rise in lasting[:MOST]]


def _lasts(rise: Rise, points: int) -> bool:
    return (points if rise.end is None else rise.end) - rise.onset >= LASTS_POINTS


def _size(slowness: FloatArray, rise: Rise) -> float:
    """Log of how much slower the steps during the rise are than as many before it, at least LASTS_POINTS."""
    return float(np.median(slowness[rise.onset : rise.end]) - np.median(slowness[max(0, rise.onset - LASTS_POINTS) : rise.onset]))


def _event(signal: Prepared, slowness: FloatArray, rise: Rise) -> Event:
    usual = float(np.median(signal.values[max(0, rise.onset - LASTS_POINTS) : rise.onset]))
    level = float(np.median(signal.values[rise.onset : rise.end]))
    step = int(signal.steps[rise.onset])
    return Event(
        kind=EventKind.THROUGHPUT_CHANGE,
        severity=Severity.INFO,
        confidence=float(np.clip(1.0 - 10.0 * rise.p_value, 0.5, 0.99)),
        signal=signal.name,
        onset_step=step,
        peak_step=step,
        end_step=None if rise.end is None else int(signal.steps[rise.end]),
        recovered=rise.end is not None,
        baseline=usual,
        peak=level,
        height=level - usual,
        p_value=rise.p_value,
        text=f"{signal.name} went from {usual:.4g} to {level:.4g}: steps take {math.expm1(_size(slowness, rise)):.0%} longer",
    )
