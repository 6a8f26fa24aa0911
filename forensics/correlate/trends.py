"""Slow movements before an event, and signals that have no role of their own. For causes that work over hundreds of steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from forensics.correlate.move import LEAD_POINTS, LEVEL_POINTS, NEAR_POINTS, Move
from forensics.correlate.view import View
from forensics.model import Absent, FloatArray
from forensics.primitives.curves import Curves
from forensics.primitives.lr_schedule import LrSchedule
from forensics.primitives.prepared import Prepared, prepare
from forensics.vocabulary import Role, normalise

__all__ = [
    "LrSchedule",
    "Prepared",
    "Sources",
    "Trend",
    "by_depth",
    "deviation",
    "fell",
    "lead_of",
    "logged",
    "named",
    "part_of",
    "rank_correlation",
    "sources",
    "together",
    "trend_before",
]

TREND_POINTS = 500
"""Logged points before an event over which a trend is measured (catalogue: at least 500 steps)."""

FEWEST = 40
"""Fewer points than this show no trend."""

BLOCKS = 10
"""A trend is measured between medians of this many blocks: single points do not matter."""

TAU = 0.6
"""Kendall's tau of the blocks against time from which they have a direction (catalogue: drift)."""

SDS = 3.0
"""Change from first to last block, in noise sds, that counts (catalogue: drift)."""

FEWEST_LEVEL = 8
"""Points that make a level before or after an event."""

LAYER = re.compile(r"(?:^|_)(?:layers?|blocks?|h|stages?|conv|fc|encoder|decoder)_?(\d{1,3})(?:_|$)")
"""The number of a layer in a normalised name. Other numbers (l2, beta1) are no layers."""

CALM_LEAD = 12
"""The last points before the onset belong to the event and not to the trend."""


_roleless: WeakKeyDictionary[Curves, dict[str, Prepared]] = WeakKeyDictionary()
"""Signals without a role, prepared once per run: many rules ask for them by name."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A lasting movement in one direction. ``factor`` is end over start, NaN where a sign changes; ``sds`` is signed."""

    name: str
    first_step: int
    last_step: int
    start: float
    end: float
    factor: float
    sds: float

    @property
    def rises(self) -> bool:
        """Upwards."""
        return self.sds > 0


def trend_before(signal: Prepared | None, step: int) -> Trend | None:
    """The trend of a signal over the points before a step; None where there is none, or too little is logged."""
    if signal is None:
        return None
    stop = max(signal.at(step) - CALM_LEAD, 0)
    first = max(0, stop - TREND_POINTS)
    window = signal.u[first:stop]
    if len(window) < FEWEST:
        return None
    levels = np.array([np.median(block) for block in np.array_split(window, BLOCKS)])
    later, earlier = np.triu_indices(BLOCKS, 1)[1], np.triu_indices(BLOCKS, 1)[0]
    tau = float(np.sign(levels[later] - levels[earlier]).mean())
    noise = max(float(np.median(signal.noise[first:stop])), 1e-12)
    sds = float(levels[-1] - levels[0]) / noise
    if abs(tau) < TAU or abs(sds) < SDS or tau * sds < 0:
        return None
    start, end = signal.original(float(levels[0])), signal.original(float(levels[-1]))
    return Trend(signal.name, int(signal.steps[first]), int(signal.steps[stop - 1]), start, end, _ratio(end, start), sds)


def lead_of(view: View, move: Move | None) -> int | None:
    """Steps by which another signal left its level before the loss did; None where the cadence cannot tell, or nothing moved."""
    if move is None or move.onset_step is None or view.rise is None:
        return None
    lead = view.rise.onset_step - move.onset_step
    coarsest = max(move.every, view.every)
    return lead if coarsest <= 1 or abs(lead) > LEAD_POINTS else None


def logged(view: View, *roles: str) -> bool:
    """One of the roles is logged; asking does not prepare it."""
    return any(not isinstance(view.run.signal(role), Absent) for role in roles)


def named(view: View, *words: str, one_of: tuple[str, ...] = ()) -> tuple[Prepared, ...]:
    """Signals whose logged name holds all the words (lower case), whatever their role; ``one_of`` must be words of their own."""
    chosen = [s for s in view.run.signals if len(s) and all(word in normalise(s.name) for word in words)]
    if one_of:
        chosen = [s for s in chosen if any(word in normalise(s.name).split("_") for word in one_of)]
    known = _roleless.setdefault(view.curves, {})
    out = []
    for signal in chosen:
        if signal.role is not None:
            out += [p for p in view.curves.every(signal.role) if p.name == signal.name]
        else:
            if signal.name not in known:
                known[signal.name] = prepare(signal, view.curves.attempts)
            out.append(known[signal.name])
    return tuple(out)


def together(a: Prepared, b: Prepared, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Values of two signals at the steps both logged, from ``first`` to ``last``."""
    i, j = (slice(s.at(first), s.at(last + 1)) for s in (a, b))
    _, left, right = np.intersect1d(a.steps[i], b.steps[j], assume_unique=True, return_indices=True)
    return a.values[i][left], b.values[j][right]


def deviation(values: FloatArray) -> float:
    """Standard deviation, also of numbers whose squares no float holds."""
    size = float(np.abs(values).max(initial=0.0))
    return size * float((values / size).std()) if 0 < size < np.inf else 0.0


def rank_correlation(a: FloatArray, b: FloatArray) -> float:
    """Spearman's correlation; 0 where one of the two is constant or fewer than three points are given."""
    if len(a) < 3 or (a == a[0]).all() or (b == b[0]).all():
        return 0.0
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: FloatArray = ends - (counts - 1) / 2.0
    return np.asarray(middles[inverse])


def _ratio(end: float, start: float) -> float:
    return end / start if start * end > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Sources:
    """Losses of single data sources that moved with the event, and those that did not."""

    moved: tuple[str, ...]
    calm: tuple[str, ...]


def sources(view: View) -> Sources | None:
    """Which of the losses per source moved; None where fewer than two are logged."""
    moves = [(s.name, view.move_of(s)) for s in view.curves.every(Role.LOSS_BY_SOURCE) if len(s)]
    known = [(name, move) for name, move in moves if move is not None]
    if len(known) < 2:
        return None
    near = LEAD_POINTS * view.every
    moved = [name for name, move in known if move.onset_step is not None and abs(move.onset_step - view.anchor) <= near]
    return Sources(tuple(moved), tuple(name for name, _ in known if name not in moved))


def by_depth(signals: Iterable[Prepared]) -> tuple[Prepared, ...]:
    """Signals that carry a layer number in their name, in the order of the layers; empty where fewer than two layers do."""
    layers: dict[int, Prepared] = {}
    for signal in signals:
        number = LAYER.search(normalise(signal.name))
        if number is not None and len(signal):
            layers.setdefault(int(number.group(1)), signal)
    return tuple(layers[n] for n in sorted(layers)) if len(layers) > 1 else ()


def part_of(signal: Prepared, *words: str) -> bool:
    """The logged name holds one of the words (lower case) as one of its own words."""
    own = normalise(signal.name).split("_")
    return any(word in own for word in words)


def fell(signal: Prepared | None, step: int) -> tuple[float, float] | None:
    """Levels before and after a step where the later one is lower by more than the noise of medians explains; else None."""
    if signal is None:
        return None
    at = signal.at(step)
    before, after = signal.values[max(0, at - LEVEL_POINTS) : at], signal.values[at + NEAR_POINTS : at + NEAR_POINTS + LEVEL_POINTS]
    if len(before) < FEWEST_LEVEL or len(after) < FEWEST_LEVEL:
        return None
    old, new = float(np.median(before)), float(np.median(after))
    spread = 1.4826 * float(np.median(np.abs(before - old)))
    return (old, new) if new < old - SDS * 1.25 * spread / np.sqrt(len(after)) and new < old else None
