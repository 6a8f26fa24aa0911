"""How one signal behaved around a step: its level before, its own onset, its peak, how it came back, where it settled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray
from forensics.primitives.prepared import Prepared
from forensics.primitives.robust import forward_median

BEFORE_POINTS = 100
"""Logged points that make the level before (the catalogue's window W)."""

LEAD_POINTS = 12
"""How far before the event an onset still counts as a lead of it."""

AFTER_POINTS = 60
"""How far after the event its peak is looked for."""

ONSET_Z = 4.0
"""A point this far above the level before is an onset; it is walked back while the points before are above 2."""

FLASH = 0.1
"""Share of the first height that is left of a flash."""

LEVEL_POINTS = 40
"""Points on either side for a change of level."""

GROWTH = 2.0
"""Factor per logged point that counts as explosive growth (catalogue: growth(x, >=4, >=2))."""


FEWEST_BEFORE = 2
"""Points that make a level; excerpts of logs often begin just before the event."""

FEW_POINTS, USUAL_SD = 8, 0.2
"""Below this many points before the event, this noise in log units is assumed at most (gradient norms of healthy runs)."""

DRIFT_POINTS = 3
"""Points in each third of the history that show whether its level was rising."""

NEAR_POINTS = 5
"""How far after the event the peak of a signal that moved together with it is looked for first."""

ECHO = slice(4, 13)
"""Points after the onset that tell an echo: has the signal calmed while another is still away?"""


@dataclass(frozen=True, slots=True)
class Move:
    """Factors are peak over baseline and so on; durations are in logged points; ``*_u`` are heights on the comparison scale.

    ``onset_step`` None: the signal did not leave its level around the event. ``first_factor`` of the highest of the first three
    points, ``second_factor`` of the second; ``flash``: within four points nearly all of the first height was gone again.
    ``points_up`` until it was back within 3 sds, None if never. ``half_life`` until half of the first height was gone, None if
    never. ``echo`` the level 4 to 12 points after the onset; ``settled`` the level 30 to 130 points after it, and ``settled_z``
    how sure that is. ``grew`` successive points with explosive growth before the peak. ``bad`` non-finite values around.
    """

    name: str
    role: str | None
    every: float
    baseline: float
    base_u: float
    sd_u: float
    onset_step: int | None
    peak_step: int
    peak: float
    factor: float
    z: float
    first_factor: float
    second_factor: float
    height_u: float
    first_u: float
    echo_u: float
    flash: bool
    points_up: int | None
    half_life: int | None
    echo: float
    settled: float
    settled_u: float
    settled_z: float
    grew: int
    bad: int

    @property
    def lasting(self) -> float:
        """Where it settled; on a log that ends too soon for that, the level shortly after the onset."""
        return self.echo if self.settled_z == 0.0 else self.settled


def measure(signal: Prepared, step: int, before: int | None = None, onset_step: int | None = None) -> Move | None:
    """Measure a signal around ``step``.

    ``before`` is the step up to which the level before is taken (``step`` by default); ``onset_step`` the signal's own onset
    where a detector has placed it. None where fewer than FEWEST_BEFORE points lie before the event or none after it.
    """
    start = signal.at(step if before is None else min(before, step))
    low = max(start - LEAD_POINTS, min(start, max(FEWEST_BEFORE, start // 3)))
    history = signal.u[max(0, low - BEFORE_POINTS) : low]
    at = max(signal.at(step), low)
    ahead = signal.u[low : at + AFTER_POINTS]
    if len(history) < FEWEST_BEFORE or len(ahead) == 0 or at >= len(signal):
        return None
    base = float(np.median(history[-BEFORE_POINTS:]))
    sd = _spread(signal, history, base, start)
    z = (ahead - base) / sd
    near = int(np.argmax(z[: at - low + NEAR_POINTS + 1]))
    peak = near if z[near] >= ONSET_Z else int(np.argmax(z))
    onset = signal.at(onset_step) - low if onset_step is not None else _onset(z - _drift(history, len(ahead)) / sd, peak)
    if onset is not None and onset_step is not None:
        onset = max(0, onset)
        peak = onset + int(np.argmax(z[onset:])) if onset < len(z) else peak
    elif onset is not None:
        peak = onset + int(np.argmax(z[onset : _calm_again(z, onset)]))
    anchor = low + (onset if onset is not None else peak)
    first = signal.u[anchor : anchor + 3]
    window = (signal.bad >= step - LEAD_POINTS * signal.every) & (signal.bad <= step + LEAD_POINTS * signal.every)
    settled = signal.u[anchor + 30 : anchor + 30 + BEFORE_POINTS]
    settled_u = float(np.median(settled)) - base if len(settled) >= 10 else 0.0
    return Move(
        name=signal.name,
        role=signal.role,
        every=signal.every,
        baseline=signal.original(base),
        base_u=base,
        sd_u=sd,
        onset_step=None if onset is None else int(signal.steps[low + onset]),
        peak_step=int(signal.steps[low + peak]),
        peak=signal.original(float(ahead[peak])),
        factor=_factor(signal, float(ahead[peak]), base),
        z=float(z[peak]),
        first_factor=_factor(signal, float(first.max()), base),
        second_factor=_factor(signal, float(signal.u[anchor + 1]), base) if anchor + 1 < len(signal) else 1.0,
        height_u=float(ahead[peak]) - base,
        first_u=float(first.max()) - base,
        echo_u=float(np.median(signal.u[anchor:][ECHO])) - base if len(signal) > anchor + ECHO.start else 0.0,
        flash=_flash(signal, anchor, base),
        points_up=_points_up(signal.u[anchor:], base, sd) if onset is not None else 0,
        half_life=_half_life(signal.u[anchor:], base),
        echo=_factor(signal, float(np.median(signal.u[anchor:][ECHO])) if len(signal) > anchor + ECHO.start else base, base),
        settled=_factor(signal, base + settled_u, base),
        settled_u=settled_u,
        settled_z=settled_u / (sd / math.sqrt(max(1.0, len(settled) / 2))) if len(settled) >= 10 else 0.0,
        grew=_grew(signal.u, anchor, low + peak) if signal.log else 0,
        bad=int(window.sum()),
    )


def _spread(signal: Prepared, history: FloatArray, base: float, start: int) -> float:
    """Noise of the level before. On a handful of points the signal's own noise is that of the event, so a usual one is assumed."""
    own = float(np.median(np.abs(history - base))) * 1.4826
    if len(history) < FEW_POINTS and signal.log:
        return max(own, min(float(signal.noise[min(start, len(signal) - 1)]), USUAL_SD))
    return max(float(signal.noise[min(start, len(signal) - 1)]), own, 1e-9)


def _drift(history: FloatArray, points: int) -> FloatArray:
    """How far a level that was slowly rising goes on to rise: a signal that drifts has not left its level."""
    third = len(history) // 3
    ahead = np.zeros(points)
    if third < DRIFT_POINTS:
        return ahead
    first, last = float(np.median(history[:third])), float(np.median(history[-third:]))
    slope = (last - first) / (len(history) - third)
    if slope <= 0:
        return ahead
    course: FloatArray = last - float(np.median(history)) + slope * (third / 2 + np.minimum(np.arange(points), LEAD_POINTS))
    return course


def _onset(z: FloatArray, peak: int) -> int | None:
    """Walk back from the peak over raised points without a gap: a lead is only a lead if the signal stays up."""
    if z[peak] < ONSET_Z:
        return None
    first = peak
    while first > 0 and z[first - 1] >= 2:
        first -= 1
    return first


def _calm_again(z: FloatArray, onset: int) -> int:
    """First position after the onset where two points in a row are near the level again; the end of the window if none."""
    near = z[onset:] < 2
    pairs = np.flatnonzero(near[:-1] & near[1:])
    return onset + max(int(pairs[0]), 1) if len(pairs) else len(z)


def _factor(signal: Prepared, u: float, base: float) -> float:
    if signal.log and signal.shift == 0:
        return float(np.exp(min(u - base, 700.0)))
    top, bottom = signal.original(u), signal.original(base)
    return top / bottom if bottom > 0 else math.nan


def _points_up(rest: FloatArray, base: float, sd: float) -> int | None:
    back = rest <= base + 3 * sd
    pairs = np.flatnonzero(back[:-1] & back[1:]) if len(back) > 1 else np.flatnonzero(back)
    return int(pairs[0]) if len(pairs) else None


def _half_life(rest: FloatArray, base: float) -> int | None:
    """Points until half of the height of the first five is gone, on medians of five: noise must not end it early."""
    smooth = forward_median(rest[:2000], 5)
    below = np.flatnonzero(smooth < base + 0.5 * (smooth[0] - base))
    return int(below[0]) if len(below) else None


def _grew(u: FloatArray, first: int, peak: int) -> int:
    """Longest stretch of steps with explosive growth from just before the onset to the peak."""
    growing = np.diff(u[max(0, first - 1) : peak + 1]) >= math.log(GROWTH)
    longest = count = 0
    for grows in growing.tolist():
        count = count + 1 if grows else 0
        longest = max(longest, count)
    return longest


def _flash(signal: Prepared, anchor: int, base: float) -> bool:
    """In the signal's own unit: a first value, and within four points a tenth of its height."""
    bottom = signal.original(base)
    first = float(signal.values[anchor]) - bottom
    after = signal.values[anchor + 1 : anchor + 5]
    return first > 0 and len(after) > 0 and float(after.min()) - bottom <= FLASH * first


def level_change(signal: Prepared, step: int, points: int = LEVEL_POINTS) -> float | None:
    """Factor between the medians of the points after and before a step; None where a side has under a quarter of them or is not positive."""
    at = signal.at(step)
    before, after = signal.values[max(0, at - points) : at], signal.values[at : at + points]
    if min(len(before), len(after)) < points // 4 or np.median(before) <= 0 or np.median(after) <= 0:
        return None
    return float(np.median(after) / np.median(before))
