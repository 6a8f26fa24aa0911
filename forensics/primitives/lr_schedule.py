"""The learning-rate schedule as it was logged: warmup, jumps, re-warming, zero, and the phase of every step.

Nothing here knows the configured schedule; everything is read off the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import BoolArray, Curve, FloatArray, IntArray, Signal

JUMP = 1.2
"""Consecutive logged values that differ by this factor are a jump (catalogue: jump(lr, 1.2))."""

ABOVE = 1.2
"""A value this far above everything before it is a new maximum, not a restart of the schedule."""

ZERO = 1e-3
"""Share of the maximum below which the learning rate no longer trains anything."""

TAIL = 0.1
"""The last tenth of a run is its tail, where schedules end."""

LOW, REST, AGAIN = 0.35, 0.01, 0.05
"""A cycle has ended when it is below this share of its peak and fell by less than that in its last fiftieth; the next one begins
at the same peak, within a twentieth."""

STAIRCASE = 1.5
"""Warmup in stairs has stairs of about equal height: largest over median step at most this, but for the jump itself."""


LAWS = ("linear", "cosine", "exponential", "inverse square root")
"""Laws of a decay, the simplest first."""

LAW, SAME_LAW = 0.01, 1.5
"""Misfit, as a share of the fall, up to which a decay follows a law; laws that fit about as well are told by the simplest."""

LAW_POINTS = 400
"""Points a law is fitted to."""


@dataclass(frozen=True, slots=True)
class LrJump:
    """Between the logged points ``index - 1`` and ``index`` the learning rate changed by ``factor``.

    ``new_maximum``: it went above everything before. ``returns``: position where it was back where it came from, or None.
    ``ramp`` points it took (1 = one step).
    """

    index: int
    step: int
    before: float
    after: float
    factor: float
    new_maximum: bool
    returns: int | None
    ramp: int


@dataclass(frozen=True, slots=True, eq=False)
class LrSchedule:
    """``steps`` and ``values`` (points,); ``warmup_end`` the position of the first maximum of the initial climb."""

    steps: IntArray
    values: FloatArray
    warmup_end: int
    peak: float
    ups: tuple[LrJump, ...]
    drops: tuple[LrJump, ...]
    zero_from: int | None
    shape: str

    @property
    def warmup_steps(self) -> int:
        """Steps from the first logged point to the end of the initial climb; 0 if it starts at its maximum."""
        return int(self.steps[self.warmup_end] - self.steps[0])

    def at(self, step: int) -> float | None:
        """The learning rate in force at a step: the last logged value at or before it."""
        i = int(np.searchsorted(self.steps, step, side="right")) - 1
        return float(self.values[i]) if i >= 0 else None

    def restart_near(self, step: int, slack: float, reach: float = 0.0) -> LrJump | None:
        """The planned restart that a step lies at: up to ``slack`` steps before it, or ``reach`` after its climb."""
        if self.shape != "restarts":
            return None
        last = len(self.steps) - 1
        near = (j for j in self.ups if not j.new_maximum and j.step - slack <= step <= int(self.steps[min(j.index + j.ramp, last)]) + max(slack, reach))
        return next(near, None)

    def climbs_to_the_end(self) -> bool:
        """The log ends in a planned climb, or shortly after it, so that what it does to the loss is not over."""
        last = len(self.steps) - 1
        return self.shape == "restarts" and bool(self.ups) and self.ups[-1].index + self.ups[-1].ramp >= last - last // 50

    def phase(self, step: int) -> str:
        """warmup, peak, stable, decay, tail, rewarm or zero."""
        i = min(max(int(np.searchsorted(self.steps, step, side="right")) - 1, 0), len(self.steps) - 1)
        warm = self.warmup_end
        if i < warm:
            return "warmup"
        if self.zero_from is not None and i >= self.zero_from:
            return "zero"
        if any(0 <= i - jump.index < max(5, jump.ramp) for jump in self.ups):
            return "rewarm"
        if warm and i <= warm + max(1, warm // 5):
            return "peak"
        if i >= len(self.steps) * (1 - TAIL):
            return "tail"
        return "stable" if self.values[i] >= 0.98 * self.peak else "decay"


def read_schedule(signal: Signal, attempts: int | None = None) -> LrSchedule | None:
    """Read the schedule off a learning-rate signal; None where fewer than three finite points are logged."""
    curve: Curve = signal.curve(attempts)
    finite = np.isfinite(curve.values) & (curve.values >= 0)
    steps, lr = curve.steps[finite], curve.values[finite]
    if len(lr) < 3 or not (lr > 0).any():
        return None
    warm = _warmup_end(lr)
    ups = _ups(steps, lr, warm)
    usual = np.ones(len(lr), dtype=bool)
    for jump in ups:
        if jump.returns is not None:
            usual[jump.index : jump.returns] = False
    peak = float(lr[usual].max()) if usual.any() else float(lr.max())
    return LrSchedule(steps, lr, warm, peak, ups, _drops(steps, lr, warm), _zero_from(lr, warm), _shape(steps, lr, warm, ups, usual))


def _warmup_end(lr: FloatArray) -> int:
    """Position of the last climbing point before the learning rate first falls, or first stays equal after a ramp.

    Stairs of about equal height belong to one climb; a jump much higher than the stairs before it does not.
    """
    falls = np.flatnonzero(np.diff(lr) < -1e-12 * lr.max())
    stop = int(falls[0]) if len(falls) else len(lr) - 1
    climbs = np.flatnonzero(np.diff(lr[: stop + 1]) > 1e-9 * lr.max())
    if len(climbs) == 0:
        return 0
    heights = np.diff(lr)[climbs]
    end = int(climbs[0]) + 1
    for k in range(1, len(climbs)):
        flat = climbs[k] - climbs[k - 1] > 1
        if flat and heights[k] > STAIRCASE * 2 * float(np.median(heights[:k])):
            break
        end = int(climbs[k]) + 1
    stairs = len(climbs) >= 3 and float(heights.max()) <= STAIRCASE * float(np.median(heights))
    if climbs[0] > 2 and not stairs and (len(climbs) == 1 or heights[0] > 0.2 * lr[0]) and lr[climbs[0]] > 0:
        return 0
    return end


def _ups(steps: IntArray, lr: FloatArray, warm: int) -> tuple[LrJump, ...]:
    climbs = np.flatnonzero(lr[1:] > lr[:-1] * (1 + 1e-9)) + 1
    climbs = climbs[climbs > warm]
    if len(climbs) == 0:
        return ()
    cuts = np.flatnonzero(np.diff(climbs) > 1)
    starts, stops = climbs[np.append(0, cuts + 1)], climbs[np.append(cuts, -1)]
    high = lr[stops] >= JUMP * lr[starts - 1]
    top = np.maximum.accumulate(lr)
    found = []
    for i, stop in zip(starts[high].tolist(), stops[high].tolist(), strict=True):
        before, after = float(lr[i - 1]), float(lr[stop])
        factor = after / before if before > 0 else float("inf")
        found.append(LrJump(i, int(steps[i]), before, after, factor, after > ABOVE * float(top[i - 1]), _returns(lr, stop, before), stop - i + 1))
    return tuple(found)


def _returns(lr: FloatArray, stop: int, before: float) -> int | None:
    """Position where the learning rate is back at what it was before the jump, if that happens abruptly and soon."""
    horizon = min(len(lr), stop + max(200, len(lr) // 20))
    back = np.flatnonzero(lr[stop + 1 : horizon] <= JUMP * before)
    if len(back) == 0:
        return None
    position = stop + 1 + int(back[0])
    abrupt = lr[position - 1] > 1.5 * lr[position]
    return position if abrupt else None


def _drops(steps: IntArray, lr: FloatArray, warm: int) -> tuple[LrJump, ...]:
    """Sharp falls, as in multi-step schedules. A fall to zero counts with factor inf."""
    found = []
    for i in range(warm + 1, len(lr)) if len(lr) < 1000 else _steep(lr, warm):
        if lr[i - 1] > 0 and lr[i] * JUMP <= lr[i - 1]:
            factor = float(lr[i - 1]) / float(lr[i]) if lr[i] > 0 else float("inf")
            found.append(LrJump(i, int(steps[i]), float(lr[i - 1]), float(lr[i]), float(factor), False, None, 1))
    return tuple(found)


def _steep(lr: FloatArray, warm: int) -> list[int]:
    falls = np.flatnonzero(lr[1:] * JUMP <= lr[:-1]) + 1
    return [int(i) for i in falls if i > warm][:1000]


def _zero_from(lr: FloatArray, warm: int) -> int | None:
    """Position from which the learning rate was nothing to the end, outside the tail: exactly zero, or fallen there abruptly."""
    n = len(lr)
    nothing = lr <= ZERO * lr.max()
    if not nothing[-1]:
        return None
    last_alive = np.flatnonzero(~nothing)
    start = int(last_alive[-1]) + 1
    if start <= warm or start >= n * (1 - TAIL) or n - start < 10:
        return None
    none = not lr[start + 1 :].any()
    return start if none or lr[start - 1] > 0.05 * lr.max() else None


def _shape(steps: IntArray, lr: FloatArray, warm: int, ups: tuple[LrJump, ...], usual: BoolArray) -> str:
    """The name of the schedule's course after the warmup; ``usual`` (points,) leaves jumps that returned out of its law."""
    rest = lr[usual][warm:]
    if len(rest) < 3 or rest.max() - rest.min() <= 1e-6 * rest.max():
        return "constant"
    planned = [jump for jump in ups if not jump.new_maximum]
    if len(planned) >= 2 or (len(planned) == 1 and _second_cycle(lr, planned[0])):
        return "restarts"
    levels = np.unique(np.round(rest / rest.max(), 6))
    if len(levels) <= max(2, len(rest) // 20):
        return "multi-step"
    flat = int(np.argmax(rest < 0.98 * rest.max())) if (rest < 0.98 * rest.max()).any() else len(rest)
    return "warmup-stable-decay" if flat > 0.3 * len(rest) else _law(steps[usual], lr[usual], warm)


def _law(all_steps: IntArray, lr: FloatArray, warm: int) -> str:
    """Which law a decay follows: linear, cosine (also an unfinished one), exponential or inverse square root; else just decay.

    Each is fitted by least squares; a tenth of the points may be off, as a jump that returned is.
    """
    steps, rest = all_steps[warm:], lr[warm:]
    begun = float(steps[0] - all_steps[0]) / max(float(all_steps[-1] - all_steps[0]), 1.0)  # a cosine may count from the first step
    keep = np.linspace(0, len(rest) - 1, min(len(rest), LAW_POINTS)).astype(np.int64)
    y = rest[keep] / rest.max()
    x = (steps[keep] - steps[0]) / max(float(steps[-1] - steps[0]), 1.0)
    alive = y > 0
    misfits = {"linear": _misfit(x, y)}
    waves = [(0.0, share) for share in np.linspace(0.3, 1.0, 29)] + [(begun * share, (1 - begun) * share) for share in np.linspace(0.3, 1.0, 29)]
    misfits["cosine"] = min(_misfit(np.cos(np.pi * (phase + share * x)), y) for phase, share in waves)
    if alive.all():
        misfits["exponential"] = _misfit(x, np.log(y)) / max(float(np.ptp(np.log(y))), 1e-9) * float(np.ptp(y))
        misfits["inverse square root"] = min(_misfit(1.0 / np.sqrt(x + start), y) for start in np.geomspace(1e-3, 1.0, 31))
    best = min(misfits, key=lambda name: (misfits[name] > SAME_LAW * min(misfits.values()), LAWS.index(name)))
    return best if misfits[best] <= LAW * float(np.ptp(y)) else "decay"


def _misfit(basis: FloatArray, y: FloatArray) -> float:
    """What is left of y after a + b basis, at nine in ten points; infinite where the basis is none."""
    if float(np.ptp(basis)) <= 0:
        return float("inf")
    slope, intercept = np.polyfit(basis, y, 1)
    return float(np.quantile(np.abs(y - (slope * basis + intercept)), 0.9))


def _second_cycle(lr: FloatArray, jump: LrJump) -> bool:
    """One restart: the learning rate had come to rest near its minimum, goes back to its peak, and falls again."""
    peak, start = float(lr[: jump.index].max()), max(0, jump.index - max(2, jump.index // 50))
    at_rest = jump.before <= LOW * peak and float(lr[start] - lr[jump.index - 1]) <= REST * peak
    after = lr[jump.index + jump.ramp - 1 :]
    return at_rest and abs(jump.after / peak - 1.0) <= AGAIN and float(after[-1]) < 0.9 * jump.after
