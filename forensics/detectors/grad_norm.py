"""Surges and lasting changes of the gradient norm.

Healthy gradient norms have heavy tails (robust z of 9 and factors of 8 are seen on runs that end well), so a surge alone is
info unless it is far outside the tail this run itself shows.
"""

from __future__ import annotations

import math

import numpy as np

from forensics.model import Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared
from forensics.primitives.rises import SHARP, Rise, find_rises
from forensics.vocabulary import Role

NAME = "grad_norm"

FAR = math.log(10.0)
"""A surge alone is a warning only past this factor (in log units): ten times the usual gradient."""

DOUBLED = math.log(2.0)
"""Slow rises below a factor of two are how gradient norms drift on every run."""

BEYOND = math.log(3.0)
"""... and only if it is this far above every other value of the run outside the surge."""

AROUND = 2000
"""Logged points on either side that the surge is compared with."""

HELD_POINTS = 30
"""Logged points on either side that show a level."""

AT_ONCE, AT_ONCE_SHARE = 5, 0.6
"""A level that is new from one step to the next has this share of its height over so many points."""

MOST = 20
"""Surges noted for one run, the tallest: a long healthy run has dozens."""

CERTAIN = 1e-4
"""... and only with a chance below this."""


def detect(curves: Curves) -> list[Event]:
    """Rises of the primary gradient norm."""
    norm = curves.get(Role.GRAD_NORM)
    if norm is None or len(norm) < 6 or _not_logged(norm):
        return []
    rises = find_rises(norm.u, norm.noise, generous=True)
    kept = [rise for rise in rises if rise.width <= SHARP or rise.top - rise.base >= DOUBLED]
    events = [_event(norm, rise, _planned(curves, norm, rise)) for rise in kept]
    tallest = {id(r) for r in sorted(kept, key=lambda r: r.base - r.top)[:MOST]}
    return [event for event, rise in zip(events, kept, strict=True) if event.severity is not Severity.INFO or id(rise) in tallest]


def _not_logged(norm: Prepared) -> bool:
    """A constant is how some loggers print "not computed"."""
    return bool(norm.values.min() == norm.values.max())


def _planned(curves: Curves, norm: Prepared, rise: Rise) -> bool:
    """The schedule lowered the learning rate here: gradients are larger where steps are smaller."""
    step, schedule = int(norm.steps[rise.onset]), curves.schedule
    return schedule is not None and any(abs(drop.step - step) <= HELD_POINTS * norm.every for drop in schedule.drops)


def _new_level(norm: Prepared, rise: Rise) -> bool:
    """From one step to the next the usual gradient is larger than any that was seen before, and stays so to the end."""
    onset = rise.onset
    before, after = norm.u[max(0, onset - AROUND) : onset], norm.u[onset:]
    if rise.end is not None or rise.width > SHARP or rise.p_value > CERTAIN or min(len(before), len(after)) < HELD_POINTS:
        return False
    third = len(after) // 3
    level = min(float(np.median(after[:third])), float(np.median(after[third : 2 * third])), float(np.median(after[2 * third :])))
    at_once = float(np.median(after[:AT_ONCE])) - rise.base >= AT_ONCE_SHARE * (level - rise.base)
    return at_once and level - rise.base >= BEYOND and level >= float(before.max())


def _event(norm: Prepared, rise: Rise, planned: bool) -> Event:
    onset, peak, end = rise.onset, rise.peak, rise.end
    stop = len(norm) if end is None else end
    others = np.concatenate([norm.u[max(0, onset - AROUND) : onset], norm.u[stop : stop + AROUND]])
    top = rise.top
    beyond = top - (float(others.max()) if len(others) else rise.base)
    far = (top - rise.base >= FAR and beyond >= BEYOND and rise.p_value <= CERTAIN) or (not planned and _new_level(norm, rise))
    lower, upper = norm.original(rise.base), float(norm.values[peak])
    return Event(
        kind=EventKind.GRAD_NORM_SURGE,
        severity=Severity.WARNING if far else Severity.INFO,
        confidence=float(np.clip(1.0 - 10.0 * rise.p_value, 0.5, 0.99)),
        signal=norm.name,
        onset_step=int(norm.steps[onset]),
        peak_step=int(norm.steps[peak]),
        end_step=None if end is None else int(norm.steps[end]),
        recovered=end is not None,
        baseline=lower,
        peak=upper,
        height=upper - lower,
        p_value=rise.p_value,
        text=f"{norm.name} rose from {lower:.4g} to {upper:.4g}{' (divided by the loss scale)' if norm.unscaled else ''}",
    )
