"""The held-out loss rises while the training loss goes on falling."""

from __future__ import annotations

import numpy as np

from forensics.model import Event, EventKind, FloatArray, Severity
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role

NAME = "overfitting"

FEWEST = 8
"""Fewer evaluations than this show no trend."""

RISE = 0.05
"""Relative rise of the held-out loss over its minimum that matters."""

MONOTONE = 0.6
"""Share of later evaluations that must lie above the one before, as for the catalogue's drift test, or above half of the final rise."""


def detect(curves: Curves) -> list[Event]:
    """A lasting rise of the primary held-out loss after its minimum."""
    held_out, loss = curves.get(Role.VAL_LOSS), curves.get(Role.LOSS)
    if held_out is None or len(held_out) < FEWEST:
        return []
    values = held_out.values
    best = int(np.argmin(values))
    after = values[best:]
    if best > 0.7 * len(values) or len(after) < 4:
        return []
    last = float(np.median(after[-3:]))
    lowest = float(values[best])
    noise = float(np.median(np.abs(np.diff(values)))) * 1.5
    if last - lowest < max(RISE * abs(lowest), 3 * noise / np.sqrt(3)) or not _stays_up(after, last):
        return []
    if loss is not None and not _falling(loss.values[loss.at(int(held_out.steps[best])) :]):
        return []
    return [
        Event(
            kind=EventKind.OVERFITTING,
            severity=Severity.WARNING,
            confidence=0.8,
            signal=held_out.name,
            onset_step=int(held_out.steps[best]),
            peak_step=int(held_out.steps[-1]),
            end_step=None,
            recovered=False,
            baseline=lowest,
            peak=last,
            height=last - lowest,
            text=f"{held_out.name} rose from {lowest:.4g} at step {int(held_out.steps[best])} to {last:.4g} while the training loss went on falling",
        )
    ]


def _stays_up(after: FloatArray, last: float) -> bool:
    """The rise is a trend, or it was fast and has stayed: no single evaluation makes it."""
    half = 0.5 * (float(after[0]) + last)
    return bool((np.diff(after) > 0).mean() >= MONOTONE or (after[1:] >= half).mean() >= MONOTONE)


def _falling(values: FloatArray) -> bool:
    third = len(values) // 3
    return third >= 2 and float(np.median(values[-third:])) < float(np.median(values[:third]))
