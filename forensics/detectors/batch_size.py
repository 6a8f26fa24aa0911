"""The batch size changes in mid-run."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "batch_size"

JUMP = 1.2
"""Factor between consecutive logged values that counts (catalogue: jump(bs, 1.2))."""

LARGE = 2.0
"""A batch smaller by this factor makes the step size too large unless the learning rate fell with it. Larger batches only
make steps calmer; they stay info and explain what else is found there."""

RAMP = 3
"""This many rises in a row are a planned ramp."""


def detect(curves: Curves) -> list[Event]:
    """Jumps of the primary batch size."""
    signal = curves.run.signal(Role.BATCH_SIZE)
    if isinstance(signal, Absent):
        return []
    curve = signal.curve(curves.attempts)
    usable = np.isfinite(curve.values) & (curve.values > 0)
    steps, sizes = curve.steps[usable], curve.values[usable]
    if len(sizes) < 3:
        return []
    ratio = sizes[1:] / sizes[:-1]
    jumps = np.flatnonzero((ratio >= JUMP) | (ratio <= 1 / JUMP)) + 1
    if len(jumps) > len(sizes) / 10:
        return []
    ramp = len(jumps) >= RAMP and bool((ratio[jumps - 1] > 1).all())
    events = []
    for i in jumps.tolist():
        before, after = float(sizes[i - 1]), float(sizes[i])
        factor = max(before, after) / min(before, after)
        last_partial = i == len(sizes) - 1
        step = int(steps[i])
        events.append(
            Event(
                kind=EventKind.BATCH_SIZE_CHANGE,
                severity=Severity.WARNING if factor >= LARGE and after < before and not last_partial else Severity.INFO,
                confidence=0.95,
                signal=signal.name,
                onset_step=step,
                peak_step=step,
                end_step=None,
                recovered=False,
                baseline=before,
                peak=after,
                height=after - before,
                text=f"{signal.name} changed from {before:g} to {after:g}" + (", one step of a ramp" if ramp else ""),
            )
        )
    return events
