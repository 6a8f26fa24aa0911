"""Bursts of loss-scale halvings, told from the scaler's ordinary search for a scale."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Curve, Event, EventKind, FloatArray, IntArray, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "loss_scale"

GAP_POINTS = 50
"""Falls this close together, in logged points and in as many logging intervals, are one burst (catalogue: 3 halvings in 50 steps),
unless the scale grew between them: then many steps had gone well."""

BURST = 3.0
"""Halvings that make a burst. One halving per growth interval is how dynamic scaling works."""

QUICK_POINTS = 12
"""Three halvings within this many logged points are a burst; spread wider, they are the scaler finding its level."""

SLOW_BURST = 5.0
"""Halvings that are a burst even when they come slowly."""

LONE = 4.0
"""A fall this many usual gaps before the next one does not belong to the burst."""

HALVING = 2.5
"""A fall by at most this factor is one halving."""

COLLAPSE = 6.0
"""Halvings without recovery that make a collapse (catalogue: 2^6)."""

SEARCH_POINTS = 50
"""A burst that starts within the first points, before any growth, is the initial search: 2^32 to 2^16 takes 16 halvings."""


def detect(curves: Curves) -> list[Event]:
    """Bursts of falls of the primary loss scale."""
    signal = curves.run.signal(Role.LOSS_SCALE)
    if isinstance(signal, Absent):
        return []
    curve = signal.curve(curves.attempts)
    usable = np.isfinite(curve.values) & (curve.values > 0)
    curve = Curve(curve.steps[usable], curve.values[usable], curve.index[usable])
    if len(curve) < 3:
        return []
    falls = np.flatnonzero(curve.values[1:] < curve.values[:-1]) + 1
    every = float(np.median(np.diff(curve.steps)))
    climbs = np.concatenate([[0], np.cumsum(np.diff(curve.values) > 0)])
    apart = (np.diff(falls) > GAP_POINTS) | (np.diff(curve.steps[falls]) > GAP_POINTS * max(every, 1.0)) | (np.diff(climbs[falls]) > 0)
    bursts = np.split(falls, np.flatnonzero(apart) + 1) if len(falls) else []
    events = [_event(signal.name, curve, _dense(burst, curve.values)) for burst in bursts]
    return [event for event in events if event is not None]


def _dense(burst: IntArray, values: FloatArray) -> IntArray:
    """Without the lone falls before the burst: a single halving shortly before is the scaler at work, not the incident."""
    start = 0
    while start < len(burst) - 1 and _lone(burst[start:], values):
        start += 1
    return burst[start:]


def _lone(falls: IntArray, values: FloatArray) -> bool:
    """The first fall is one halving, and the next one comes much later than those after it follow each other."""
    gaps = np.diff(falls)
    halving = values[falls[0] - 1] <= HALVING * values[falls[0]]
    rest = np.log2(values[falls[1] - 1]) - np.log2(values[falls[-1]])
    usual = float(np.median(gaps[1:])) if len(gaps) > 1 else 1.0
    return bool(halving and rest >= BURST and gaps[0] > LONE * usual)


def _event(name: str, curve: Curve, burst: IntArray) -> Event | None:
    first, last = int(burst[0]), int(burst[-1])
    before, after = float(curve.values[first - 1]), float(curve.values[last])
    halvings = float(np.log2(before) - np.log2(after))
    if halvings < BURST or (last - first >= QUICK_POINTS and halvings < SLOW_BURST):
        return None
    later = curve.values[last : last + 200]
    recovered = bool((later >= 4 * after).any())
    search = first < SEARCH_POINTS and not (np.diff(curve.values[:first]) > 0).any()
    collapse = (halvings >= COLLAPSE and not recovered) or after <= 1.0
    onset, end = int(curve.steps[first]), int(curve.steps[last])
    return Event(
        kind=EventKind.LOSS_SCALE_COLLAPSE if collapse and not search else EventKind.LOSS_SCALE_DROP,
        severity=Severity.INFO if search else Severity.WARNING,
        confidence=0.95,
        signal=name,
        onset_step=onset,
        peak_step=end,
        end_step=end,
        recovered=recovered,
        baseline=before,
        peak=after,
        height=after - before,
        text=f"{name} fell from {before:g} to {after:g} in {len(burst)} steps ({halvings:.0f} halvings)" + (", the scaler's initial search" if search else ""),
    )
