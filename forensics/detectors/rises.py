"""Rises of the loss: fast spike, slow spike, level shift, drift and divergence.

What rose is found once (``primitives.rises``); this file gives it its name by how it ends. A spike comes back within 50
logged points, a slow spike later, a level shift stays on a new level, a divergence is still rising or has lost most of what
training gained, a drift rose without any sharp step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.model import Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.fragments import fragment_rises
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.primitives.rises import SHARP, Rise, find_rises
from forensics.vocabulary import Role

NAME = "rises"

FAST_POINTS = 50
"""A spike that is over within this many logged points is a fast one (published definition)."""

LOST = 0.5
"""Share of all progress that must be lost for a rise that stays to be called a divergence."""

RESTART_POINTS, RESTART_SHARE = 60, 0.02
"""Logged points after a planned restart of the learning rate, or share of the run, in which the loss may rise with it."""

ABRUPT_SHARE = 0.6
"""Share of its height that an abrupt rise has within three points."""

ABRUPT_SDS = 10.0
"""Height of these points in noise sds from which a rise is abrupt whatever is trained."""

SETTLED_POINTS = 20
"""Logged points after which a loss that jumped and then held its new level is seen to hold it."""

GRADUAL_POINTS, CLIMB_SDS = 20, 7.0
"""Logged points from which a climb of the learning rate is gradual: it explains no rise of this many noise sds at once."""

SMALL = 0.05
"""Share of the progress so far below which a rise that comes back is info."""

VISIBLE = 1.5
"""Rises whose height is below this many noise sds, and that recover, are info: nobody would stop a run for them."""


def detect(curves: Curves) -> list[Event]:
    """Rises of the primary loss."""
    loss = curves.get(Role.LOSS)
    if loss is None or len(loss) < 3:
        return []
    aim = objective(curves.run)
    found = find_rises(loss.u, loss.noise) if len(loss) >= 6 else []
    pieces = fragment_rises(loss.steps, loss.u) if loss.log else []
    sharper = [p for p in pieces if p.width == 1]
    found = [r for r in found if not any(_within(loss, p, r) for p in sharper)]
    events = [_event(loss, rise, _expected(curves, loss, rise, aim)) for rise in found]
    for rise in pieces:
        if not any(r.onset - 2 <= rise.onset <= (len(loss) if r.end is None else r.end) for r in found):
            kind = EventKind.SPIKE if rise.width == 1 else EventKind.DIVERGENCE
            events.append(replace(_event(loss, rise, _expected(curves, loss, rise, aim)), kind=kind, confidence=0.7))
    return events


def _within(loss: Prepared, jump: Rise, rise: Rise) -> bool:
    """A rise over the gaps of a log that is really one jump within one of its stretches."""
    inside = rise.onset < jump.onset <= (len(loss) if rise.end is None else rise.end)
    return inside and jump.top - jump.base >= ABRUPT_SHARE * (rise.top - rise.base)


def _expected(curves: Curves, loss: Prepared, rise: Rise, aim: Objective) -> str:
    """Why this rise is no fault: the objective, or a planned restart of the learning rate. Empty where nothing explains it."""
    if aim is not Objective.ORDINARY and not _abrupt(loss, rise):
        return f"for {aim.value} training a rising loss is not a fault by itself"
    schedule = curves.schedule
    if schedule is None or (rise.end is None and not schedule.climbs_to_the_end()):
        return ""
    slack, reach = max(2, rise.width // 2), max(RESTART_POINTS, int(RESTART_SHARE * len(loss)))
    restart = schedule.restart_near(int(loss.steps[rise.onset]), slack * loss.every, reach * loss.every)
    if restart is not None and restart.ramp > GRADUAL_POINTS and _abrupt(loss, rise, CLIMB_SDS):
        return ""
    return "" if restart is None else f"the schedule restarts the learning rate at step {restart.step}"


def _event(loss: Prepared, rise: Rise, expected: str) -> Event:
    kind = _kind(loss, rise)
    height = float(loss.u[rise.peak] - rise.base)
    severity = Severity.WARNING
    if kind is EventKind.DIVERGENCE or (kind is EventKind.LEVEL_SHIFT and _lost(loss, rise)):
        severity = Severity.CRITICAL
    elif rise.end is not None and (height < VISIBLE * float(loss.noise[rise.onset]) or _small(loss, rise)):
        severity = Severity.INFO
    note = ""
    if expected:
        severity = Severity.INFO
        note = f"; {expected}"
    base = loss.original(rise.base)
    peak = float(loss.values[rise.peak])
    return Event(
        kind=kind,
        severity=severity,
        confidence=float(np.clip(1.0 - 10.0 * rise.p_value, 0.5, 0.99)),
        signal=loss.name,
        onset_step=int(loss.steps[rise.onset]),
        peak_step=int(loss.steps[rise.peak]),
        end_step=None if rise.end is None else int(loss.steps[rise.end]),
        recovered=rise.end is not None,
        baseline=base,
        peak=peak,
        height=peak - base,
        p_value=rise.p_value,
        text=f"{loss.name} rose from {base:.4g} to {peak:.4g}{note}",
    )


def _abrupt(loss: Prepared, rise: Rise, sds: float = ABRUPT_SDS) -> bool:
    """Most of the height within three points and far above the noise: no kind of training rises like that by itself."""
    first = float(loss.u[rise.onset : rise.onset + 3].max()) - rise.base
    return first >= ABRUPT_SHARE * (float(loss.u[rise.peak]) - rise.base) and first >= sds * float(loss.noise[rise.onset])


def _abrupt_to(loss: Prepared, rise: Rise, level: float) -> bool:
    """Within three points the loss had most of the height at which it then stayed: it jumped there, it did not grow."""
    return float(loss.u[rise.onset : rise.onset + 3].max()) - rise.base >= ABRUPT_SHARE * (level - rise.base)


def _lost(loss: Prepared, rise: Rise) -> bool:
    """Half of all progress is gone and does not come back, whatever it is called."""
    first = float(np.median(loss.u[: max(3, min(20, len(loss) // 20))]))
    last = float(np.median(loss.u[rise.onset :][-max(3, (len(loss) - rise.onset) // 10) :]))
    return last - rise.base > LOST * max(first - rise.base, 1e-9)


def _small(loss: Prepared, rise: Rise) -> bool:
    """A rise that came back and was tiny beside what training had gained: real, but nothing to stop for."""
    start = float(np.median(loss.values[: max(3, min(20, len(loss) // 20))]))
    gained = start - loss.original(rise.base)
    return gained > 0 and float(loss.values[rise.peak]) - loss.original(rise.base) < SMALL * gained


def _kind(loss: Prepared, rise: Rise) -> EventKind:
    if rise.end is not None:
        return EventKind.SPIKE if rise.end - rise.onset <= FAST_POINTS else EventKind.SLOW_SPIKE
    after = loss.u[rise.onset :]
    last = float(np.median(after[-max(3, len(after) // 10) :]))
    first = float(np.median(loss.u[: max(3, min(20, len(loss) // 20))]))
    gained = max(first - rise.base, 1e-9)
    middle = float(np.median(after[len(after) // 3 : len(after) // 3 + max(3, len(after) // 10)]))
    rising = last > middle + float(loss.noise[-1])
    if rise.width <= SHARP and not rising and len(after) >= SETTLED_POINTS and _abrupt_to(loss, rise, middle):
        return EventKind.LEVEL_SHIFT
    if last > first or (last - rise.base) > LOST * gained or (rising and len(after) <= 20):
        return EventKind.DIVERGENCE
    if rise.width > SHARP:
        return EventKind.DRIFT
    return EventKind.LEVEL_SHIFT
