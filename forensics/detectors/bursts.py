"""For a while the loss comes in bursts: a stretch in which its level and its spread are many times those before and after it.

On the logarithmic scale of the other detectors a loss near zero may climb for long before it shows in its own unit; what a person
sees there are the bursts.
"""

from __future__ import annotations

import numpy as np

from forensics.model import Event, EventKind, FloatArray, Severity
from forensics.primitives.changepoints import changepoints
from forensics.primitives.curves import Curves
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.primitives.robust import block_medians, centred_median, mad_sd
from forensics.primitives.tails import Tail
from forensics.vocabulary import Role

NAME = "bursts"

FEWEST = 200
"""Points of a curve in which a stretch can be told from its surroundings."""

SHORTEST = 30
"""Points of the shortest stretch."""

TIMES, CALMER = 3.0, 2.0
"""How many times the spread before it a stretch must have (catalogue), and the spread after it."""

CLIMB = 8.0
"""How far the slow course must lie above its own earlier minimum, as a factor, for the search to begin."""

TURNS = 0.5
"""Share of neighbouring steps that go opposite ways: white noise has two thirds, a slow bump few (catalogue: 0.6)."""

RAISED = 3.0
"""Sds above the level before at which the stretch may already have begun."""

DEGREES = 8.0
"""Degrees of freedom assumed for the test."""


def detect(curves: Curves) -> list[Event]:
    """Stretches of bursts of the primary loss that end."""
    loss = curves.get(Role.LOSS)
    if loss is None or len(loss) < FEWEST or not loss.log or not _climbs(loss.values):
        return []
    cuts = changepoints(loss.values)
    events = [_stretch(curves, loss, (before, start, stop)) for before, start, stop in zip([0, *cuts], cuts, cuts[1:], strict=False)]
    return [e for e in events if e is not None]


def _climbs(values: FloatArray) -> bool:
    course = centred_median(block_medians(values, max(1, len(values) // 2000)), 15)
    lowest = np.minimum.accumulate(course)
    return bool((course >= CLIMB * lowest).any() and lowest[-1] > 0)


def _stretch(curves: Curves, loss: Prepared, cut: tuple[int, int, int]) -> Event | None:
    before, start, stop = cut
    values = loss.values
    inside, earlier, later = values[start:stop], values[before:start], values[stop : stop + max(stop - start, SHORTEST)]
    if min(len(inside), len(earlier)) < SHORTEST or len(later) < SHORTEST // 2:
        return None
    spread = mad_sd(inside)
    ratio = spread / max(mad_sd(earlier), 1e-300)
    steps = np.diff(inside)
    turns = float((steps[1:] * steps[:-1] < 0).mean())
    if ratio < TIMES or spread < CALMER * mad_sd(later) or turns < TURNS or float(np.median(inside)) < TIMES * float(np.median(earlier)):
        return None
    onset = start
    limit = float(np.median(earlier)) + RAISED * mad_sd(earlier)
    while onset > before + SHORTEST // 2 and np.median(values[onset - 3 : onset]) > limit:
        onset -= 1
    z = float(np.log(ratio)) / (1.17 * float(np.sqrt(1.0 / len(inside) + 1.0 / len(earlier))))
    peak = start + int(np.argmax(inside))
    base, top = float(np.median(earlier)), float(values[peak])
    return Event(
        kind=EventKind.OSCILLATION,
        severity=Severity.WARNING if objective(curves.run) is Objective.ORDINARY else Severity.INFO,
        confidence=0.8,
        signal=loss.name,
        onset_step=int(loss.steps[onset]),
        peak_step=int(loss.steps[peak]),
        end_step=int(loss.steps[stop]),
        recovered=True,
        baseline=base,
        peak=top,
        height=top - base,
        p_value=Tail(np.empty(0), DEGREES).p_value(z, len(values) / len(inside)),
        text=f"{loss.name} comes in bursts up to {top:.4g} between two calmer times; before, it varied {ratio:.1f} times less",
    )
