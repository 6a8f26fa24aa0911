"""What was continuous across a restart of the process, and what was not: learning rate, loss scale, batches, loss, gradient norm.

Each fact is compared over the last logged points before the restart and the first after it. A restart shows as a new attempt,
as a long pause of the clock, or, less surely, as a gap in the logged steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role


class Mark(StrEnum):
    """How a restart shows."""

    ATTEMPT = "a new process wrote from here"
    PAUSE = "the clock shows a long pause"
    GAP = "steps are missing before it"


class Across(StrEnum):
    """What happened to a signal across the restart."""

    CONTINUED = "continued"
    CHANGED = "changed"
    UNKNOWN = "unknown"


SAME_LR = 0.05
"""Relative change of the learning rate between the two logged points around a restart that a schedule makes by itself."""

SAME_SCALE = 2.0
"""Factor of the loss scale that a scaler makes by itself."""

OFF_SDS = 6.0
"""Noise sds by which the first loss must differ from the last level to be off (catalogue: rz >= 6)."""

BEFORE_POINTS = 20
"""Points that make the level before."""

LATER = slice(3, 23)
"""Points after the restart that tell how the gradient norm went on."""

GRAD_FACTOR = 1.5
"""Factor of the gradient norm, later against before, that is a change."""

FEWEST = 3
"""Points that make a level."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One signal across the restart: ``text`` says it with the numbers; ``step`` and ``value`` are those of the first point after."""

    role: str
    across: Across
    text: str
    step: int | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Continuity:
    """``step`` is the first step after the restart. Facts are in the order in which a restart is checked by hand."""

    step: int
    mark: Mark
    facts: tuple[Fact, ...]

    def fact(self, role: str) -> Fact | None:
        """The fact about a role; None where the role is not logged on both sides."""
        return next((f for f in self.facts if f.role == role), None)

    def changed(self, role: str) -> bool | None:
        """Did it change? None where that is not known."""
        found = self.fact(role)
        return None if found is None or found.across is Across.UNKNOWN else found.across is Across.CHANGED

    @property
    def sentence(self) -> str:
        """All facts in one line."""
        return "; ".join(f.text for f in self.facts) or "nothing is logged on both sides of it"


def continuity(curves: dict[str, Prepared | None], step: int, mark: Mark) -> Continuity:
    """Check the usual signals across a restart. ``curves`` holds prepared signals by role; absent ones are None."""
    checks = (
        (Role.LR, _lr),
        (Role.LOSS_SCALE, _scale),
        (Role.BATCH_ID, _batches),
        (Role.LOSS, _first_loss),
        (Role.GRAD_NORM, _grad),
    )
    facts = []
    for role, check in checks:
        signal = curves.get(role)
        if signal is None or len(signal) == 0:
            continue
        at = signal.at(step)
        if 0 < at < len(signal):
            facts.append(check(signal, at))
    return Continuity(step, mark, tuple(facts))


CHECKED = (Role.LR, Role.LOSS_SCALE, Role.BATCH_ID, Role.LOSS, Role.GRAD_NORM)
"""Roles that are looked at."""


def _lr(signal: Prepared, at: int) -> Fact:
    before, after = float(signal.values[at - 1]), float(signal.values[at])
    usual = _usual_change(signal, at)
    far = abs(after - before) > max(SAME_LR * max(abs(before), abs(after)), 3 * usual)
    how = f"went from {before:.4g} to {after:.4g}" if far else f"went on at {after:.4g}"
    return Fact(Role.LR, _across(far), f"the learning rate {how}", int(signal.steps[at]), after)


def _usual_change(signal: Prepared, at: int) -> float:
    """What the schedule changes over the same distance in steps, from the points before."""
    steps, values = signal.steps[max(0, at - BEFORE_POINTS) : at], signal.values[max(0, at - BEFORE_POINTS) : at]
    if len(steps) < FEWEST:
        return 0.0
    slope = np.abs(np.diff(values) / np.diff(steps))
    return float(np.median(slope)) * float(signal.steps[at] - signal.steps[at - 1])


def _scale(signal: Prepared, at: int) -> Fact:
    before, after = float(signal.values[at - 1]), float(signal.values[at])
    far = not before / SAME_SCALE <= after <= before * SAME_SCALE
    how = f"went from {before:g} to {after:g}" if far else f"went on at {after:g}"
    return Fact(Role.LOSS_SCALE, _across(far), f"the loss scale {how}", int(signal.steps[at]), after)


def _batches(signal: Prepared, at: int) -> Fact:
    """A counter goes on counting; ids without an order are only told from those seen before."""
    before, after = signal.values[max(0, at - BEFORE_POINTS) : at], float(signal.values[at])
    stride = np.diff(before)
    step = int(signal.steps[at])
    counts = len(stride) >= FEWEST and float((stride == np.median(stride)).mean()) >= 0.9
    seen = signal.steps[:at][signal.values[:at] == after]
    if len(seen):
        text = f"batch {after:g} had been trained on at step {int(seen[-1])}: the data began again"
        return Fact(Role.BATCH_ID, Across.CHANGED, text, step, after)
    if not counts:
        return Fact(Role.BATCH_ID, Across.UNKNOWN, "batch ids have no order to go on in; none came twice", step, after)
    distance = float(signal.steps[at] - signal.steps[at - 1]) / signal.every
    expected = float(before[-1]) + float(np.median(stride)) * distance
    far = abs(after - expected) > 2 * abs(float(np.median(stride)))
    text = f"batch ids jumped from {before[-1]:g} to {after:g}" if far else f"batch ids went on at {after:g}"
    return Fact(Role.BATCH_ID, _across(far), text, step, after)


def _first_loss(signal: Prepared, at: int) -> Fact:
    history = signal.u[max(0, at - BEFORE_POINTS) : at]
    first = float(signal.values[at])
    step = int(signal.steps[at])
    if len(history) < FEWEST:
        return Fact(Role.LOSS, Across.UNKNOWN, f"the first loss was {first:.4g}, with too little before to compare", step, first)
    level = float(np.median(history))
    sd = max(float(signal.noise[at - 1]), 1e-9)
    far = abs(float(signal.u[at]) - level) > OFF_SDS * sd
    side = "off" if far else "right"
    return Fact(Role.LOSS, _across(far), f"the first loss was {side}, {first:.4g} after {signal.original(level):.4g}", step, first)


def _grad(signal: Prepared, at: int) -> Fact:
    before, later = signal.values[max(0, at - BEFORE_POINTS) : at], signal.values[at:][LATER]
    step = int(signal.steps[at])
    if len(before) < FEWEST or len(later) < FEWEST or np.median(before) <= 0:
        return Fact(Role.GRAD_NORM, Across.UNKNOWN, "the gradient norm is logged too rarely around it", step, float(signal.values[at]))
    old, new = float(np.median(before)), float(np.median(later))
    far = not old / GRAD_FACTOR <= new <= old * GRAD_FACTOR
    how = f"settled at {new:.3g} after {old:.3g}" if far else f"went on at {new:.3g}"
    return Fact(Role.GRAD_NORM, _across(far), f"the gradient norm {how}", step, new)


def _across(changed: bool) -> Across:
    return Across.CHANGED if changed else Across.CONTINUED


