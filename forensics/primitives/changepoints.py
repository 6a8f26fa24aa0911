"""Where a series changes its level or its slope: offline segmentation with a calibrated penalty.

Several explanations of the whole series compete: segments of constant level, the same on top of a smooth curve, segments of
straight lines, segments of constant slope (levels of the differences), and without any change a smooth curve or a level that
wanders. Each is judged by how well it predicts the next value (autoregressive noise with heavy tails), plus a penalty for
every number it has to choose. So trend, correlated noise and outliers are not mistaken for changes, because an explanation
without changes does as well.

Long series are cut into blocks, segmented on the block medians, and the steps are then placed among single points: the cost
is linear in the number of points. ``tests/benchmarks/changepoints_study.py`` shows where the penalty comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import lfilter

from forensics.model import FloatArray, IntArray
from forensics.primitives.robust import MAD_TO_SD, centred_median
from forensics.primitives.season import without_season

PENALTY, PENALTY_PER_LOG = 4.0, 0.75
"""Price of one number of an explanation, in twice the log likelihood: PENALTY + PENALTY_PER_LOG * log(points).

From the simulation study: the cheapest price at which at most 5 % of the series without a change get one, at every length.
"""

BLOCKS = 1000
"""Longest series that is segmented point by point; longer ones on about this many block medians."""

FEWEST = 12
"""Shorter series show no change that could be told from chance."""

SHORTEST, SHORTEST_SHARE = 5, 0.01
"""Points of the shortest segment, and its share of the series."""

MOST = 20
"""Changes looked for in one series."""

TAIL = 5.0
"""Degrees of freedom of the noise: an outlier is then cheaper as an outlier than as two changes."""

FITS = 6
"""Rounds of reweighting; the misfit no longer moves in the third digit after five."""

OUTLIER = 4.0
"""Single values further from the median of their neighbours than this many sds are drawn in before cutting."""

INVISIBLE = 1e-6
"""Noise variance below this share of the variance of the series counts as this: nobody would see such a change."""

SAME = 1e-12
"""A series that varies by less than this share of its largest value is constant."""

UNIT_ROOT = 0.999
"""Largest autoregressive coefficient."""

DEGREES = (1, 2, 3, 4)
"""Degrees of the polynomials that compete."""

SCALES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""How fast a curve falls: the time constant as a share of the series."""

GREEDY = 3
"""Steps that are tried on every curve before one is chosen."""

ROUNDS = 2
"""Rounds of fitting the chosen curve and cutting what is left of it."""

WANDER = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7)
"""How fast a wandering level follows the values (the weight of exponential smoothing)."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One way to see a series: ``changes`` are the indices at which segments begin, ``numbers`` what it has to choose.

    ``misfit`` is twice the negative log likelihood; ``family`` level, line, slope, bend, curve or wander.
    """

    family: str
    changes: tuple[int, ...]
    numbers: int
    misfit: float


def changepoints(values: ArrayLike) -> list[int]:
    """Indices at which a new segment begins, ascending; the first segment (index 0) is not listed.

    ``values`` (time,) of any finite scale; NaN and infinite values are bridged. Empty, constant and very short series have no
    change. Raises ValueError for arrays of more than one dimension.
    """
    raw = np.asarray(values, dtype=np.float64)
    y = usable(raw)
    if y is None:
        return []
    first = int(np.argmax(np.isfinite(raw)))
    size = -(-len(y) // BLOCKS)
    blocks = y if size == 1 else _block_medians(y, size)
    best = cheapest(explanations(blocks), price(len(blocks)))
    edges = [c * size for c in best.changes]
    if size > 1 and best.family != "slope":
        edges = _placed(y, edges, size, best.family)
    return [first + edge for edge in edges]


def usable(values: FloatArray) -> FloatArray | None:
    """The series from its first to its last finite value, gaps bridged, mean 0 and sd 1; None where it cannot show a change."""
    if values.ndim != 1:
        raise ValueError(f"changepoints takes one value per time, found an array of shape {values.shape}")
    good = np.flatnonzero(np.isfinite(values))
    if len(good) < FEWEST:
        return None
    y = np.interp(np.arange(good[0], good[-1] + 1), good, values[good])
    top = float(np.abs(y).max())
    y = y / top if top > 0 else y
    y = y - y.mean()
    spread = float(y.std())
    return y / spread if spread > SAME else None


def price(points: int) -> float:
    """Penalty per number of an explanation for a series of so many points."""
    return float(PENALTY + PENALTY_PER_LOG * np.log(max(points, 2)))


def cheapest(choices: Sequence[Explanation], each: float) -> Explanation:
    """The explanation with the smallest misfit plus ``each`` per number; the simpler one on a tie."""
    return min(choices, key=lambda e: (e.misfit + each * e.numbers, e.numbers))


def explanations(y: FloatArray) -> list[Explanation]:
    """Every explanation of a standardised series (points,) that competes, with its misfit."""
    y = without_season(y)
    n = len(y)
    shortest = max(SHORTEST, int(SHORTEST_SHARE * n))
    most = max(0, min(MOST, n // shortest - 1, n // 8))
    steps = np.diff(y)
    calm_y, calm_steps = _outliers_drawn_in(y), _outliers_drawn_in(steps)
    floor = INVISIBLE * max(float(np.var(y)), np.finfo(np.float64).tiny)
    out = []
    for changes in _partitions(_level_costs(calm_y, shortest), most):
        misfit = _misfit(y - _levels(calm_y, changes), n, floor, 0.0)
        out.append(Explanation("level", changes, 1 + 2 * len(changes), misfit))
    for changes in _partitions(_line_costs(calm_y, shortest), most):
        misfit = _misfit(y - _lines(calm_y, changes), n, floor, 0.0)
        out.append(Explanation("line", changes, 2 + 3 * len(changes), misfit))
    for changes in _partitions(_level_costs(calm_steps, shortest), most):
        misfit = _misfit(steps - _levels(calm_steps, changes), n, floor, -0.9)
        out.append(Explanation("slope", tuple(c + 1 for c in changes), 2 + 2 * len(changes), misfit))
    for basis, numbers in _curves(len(steps)):
        curve = basis @ _fit(basis, calm_steps)
        out.append(Explanation("curve", (), numbers + 1, _misfit(steps - curve, n, floor, -0.9)))
    out.extend(_bent(y, calm_y, shortest=shortest, most=most, floor=floor))
    moved = steps - steps.mean()
    for weight in WANDER:
        surprise = np.asarray(lfilter([1.0], [1.0, weight - 1.0], moved), dtype=np.float64)
        out.append(Explanation("wander", (), 3, _white_misfit(surprise, n, floor)))
    return out


def _bent(y: FloatArray, calm: FloatArray, *, shortest: int, most: int, floor: float) -> list[Explanation]:
    """Smooth curves, and the best of them with steps of level on top.

    A step pulls a curve that is fitted without it, so the curve is chosen with up to GREEDY steps, found one by one, in place;
    the chosen curve is then taken off and what is left is cut properly.
    """
    n, each = len(y), price(len(y))

    def told(basis: FloatArray, numbers: int, changes: tuple[int, ...]) -> _Bend:
        design = np.hstack([basis, np.arange(n)[:, None] >= np.array(changes, dtype=np.int64)])
        weights = _fit(design, calm)
        fitted = design @ weights
        explanation = Explanation("bend" if changes else "curve", changes, numbers + 2 * len(changes), _misfit(y - fitted, n, floor, 0.0))
        return _Bend(explanation, basis, numbers, basis @ weights[: basis.shape[1]], calm - fitted, explanation.misfit + each * explanation.numbers)

    bends = []
    for basis, numbers in _curves(n):
        bend = told(basis, numbers, ())
        bends.append(bend)
        for _ in range(min(GREEDY, most)):
            more = told(basis, numbers, _with_next_step(bend.rest, bend.explanation.changes, shortest))
            bends.append(more)
            if more.cost >= bend.cost:
                break
            bend = more
    best = min(bends, key=lambda b: b.cost)
    for _ in range(ROUNDS if most else 0):
        cuts = list(_partitions(_level_costs(calm - best.curve, shortest), most))[1:]
        stepped = [told(best.basis, best.numbers, changes) for changes in cuts]
        bends += stepped
        best = min([*stepped, best], key=lambda b: b.cost)
    return [b.explanation for b in bends]


@dataclass(frozen=True, slots=True, eq=False)
class _Bend:
    """A curve with steps: its columns, the curve alone, what is left (points,), and its price."""

    explanation: Explanation
    basis: FloatArray
    numbers: int
    curve: FloatArray
    rest: FloatArray
    cost: float


def _with_next_step(rest: FloatArray, changes: tuple[int, ...], shortest: int) -> tuple[int, ...]:
    """The changes and the one that lowers the rest most, apart from them."""
    n = len(rest)
    k = np.arange(1, n)
    gain = np.cumsum(rest)[:-1] ** 2 / (k * (n - k))
    for change in (0, *changes, n):
        gain[max(0, change - shortest) : change + shortest - 1] = -1.0
    return tuple(sorted((*changes, int(k[np.argmax(gain)]))))


def _fit(design: FloatArray, y: FloatArray) -> FloatArray:
    """Least squares by the normal equations: the columns are of size one and few, and this is ten times as fast."""
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-9 * len(y)
    return np.asarray(np.linalg.solve(gram, design.T @ y), dtype=np.float64)


# Cutting


def _block_medians(y: FloatArray, size: int) -> FloatArray:
    whole = len(y) // size * size
    medians: FloatArray = np.median(y[:whole].reshape(-1, size), axis=1)
    return medians


def _level_costs(y: FloatArray, shortest: int) -> FloatArray:
    """``[t, s]``: sum of squares around the mean of ``y[s:t]``, infinite for segments shorter than ``shortest``."""
    total, squares = _sums(y), _sums(y * y)
    length = _lengths(len(y))
    inside = length >= shortest
    cost = squares[:, None] - squares - (total[:, None] - total) ** 2 / np.where(inside, length, 1.0)
    return np.where(inside, np.maximum(cost, 0.0), np.inf)


def _line_costs(y: FloatArray, shortest: int) -> FloatArray:
    """As ``_level_costs``, around the straight line fitted to ``y[s:t]``."""
    n = len(y)
    place = np.arange(n) - n / 2.0
    total, moment = _sums(y), _sums(place * y)
    length = _lengths(n)
    edge = np.arange(n + 1)
    middle = (edge[:, None] + edge - 1) / 2.0 - n / 2.0
    together = moment[:, None] - moment - middle * (total[:, None] - total)
    spread = length * (length * length - 1) / 12.0
    gain = np.where(length >= 2, together * together / np.where(spread > 0, spread, 1.0), 0.0)
    cost = _level_costs(y, shortest) - gain
    return np.where(np.isfinite(cost), np.maximum(cost, 0.0), np.inf)


def _sums(y: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(y)])


def _lengths(n: int) -> FloatArray:
    edge = np.arange(n + 1, dtype=np.float64)
    return edge[:, None] - edge


def _partitions(cost: FloatArray, most: int) -> Iterator[tuple[int, ...]]:
    """The best partition with 0, 1, ... ``most`` changes (dynamic programming over ``cost[t, s]``)."""
    yield ()
    best, ways = cost[:, 0], np.empty_like(cost)
    rows = np.arange(len(cost))
    cuts: list[IntArray] = []
    for _ in range(most):
        np.add(cost, best, out=ways)
        cut = np.argmin(ways, axis=1)
        best = ways[rows, cut]
        cuts.append(cut)
        if not np.isfinite(best[-1]):
            return
        changes, end = [], len(cost) - 1
        for earlier in reversed(cuts):
            end = int(earlier[end])
            changes.append(end)
        yield tuple(reversed(changes))


def _levels(y: FloatArray, changes: Sequence[int]) -> FloatArray:
    fitted = np.empty(len(y))
    for start, stop in pairwise((0, *changes, len(y))):
        fitted[start:stop] = y[start:stop].mean()
    return fitted


def _lines(y: FloatArray, changes: Sequence[int]) -> FloatArray:
    fitted = np.empty(len(y))
    for start, stop in pairwise((0, *changes, len(y))):
        place = np.arange(stop - start) - (stop - start - 1) / 2.0
        fitted[start:stop] = y[start:stop].mean() + (place @ y[start:stop]) / max(float(place @ place), 1.0) * place
    return fitted


def _placed(y: FloatArray, edges: Sequence[int], size: int, family: str) -> list[int]:
    """The point within two blocks of each edge that best divides what is left and right of it (least squares)."""
    out: list[int] = []
    for before, edge, after in zip((0, *edges[:-1]), edges, (*edges[1:], len(y)), strict=True):
        reach = 4 * size
        low, high = max(before, edge - reach), min(after, edge + reach)
        near = y[low:high]
        if family != "level":
            left, right = near[: edge - low], near[edge - low :]
            near = near - 0.5 * (_slope(left) + _slope(right)) * np.arange(len(near))
        total, k = np.cumsum(near), np.arange(1, len(near))
        gain = (total[:-1] / k - (total[-1] - total[:-1]) / (len(near) - k)) ** 2 * k * (len(near) - k)
        allowed = np.abs(k + low - edge) <= 2 * size
        out.append(low + int(k[np.argmax(np.where(allowed, gain, -1.0))]))
    return sorted(set(out))


def _slope(y: FloatArray) -> float:
    place = np.arange(len(y)) - (len(y) - 1) / 2.0
    return float(place @ y) / max(float(place @ place), 1.0)


# Judging


def _misfit(residual: FloatArray, points: int, floor: float, lowest: float) -> float:
    """Twice the negative log likelihood of a residual as first-order autoregressive noise with Student innovations.

    ``points`` puts series of differences on the same footing; ``lowest`` bounds the autoregressive coefficient.
    """
    before, now = residual[:-1], residual[1:]
    weight = np.ones(len(now))
    surprise = residual
    for _ in range(FITS):
        power = float((weight * before) @ before)
        phi = float(np.clip((weight * before) @ now / power, lowest, UNIT_ROOT)) if power > 0 else 0.0
        surprise = np.concatenate([[residual[0] * np.sqrt(max((1.0 - phi) ** 2, 1.0 - phi * phi, 1e-2))], now - phi * before])
        weight = _weights(surprise, floor)[1:]
    return _white_misfit(surprise, points, floor)


def _white_misfit(surprise: FloatArray, points: int, floor: float) -> float:
    """The same for independent Student noise of unknown scale."""
    weight = np.ones(len(surprise))
    variance = floor
    for _ in range(FITS):
        variance = max(float((weight * surprise) @ surprise) / len(surprise), floor)
        weight = (TAIL + 1.0) / (TAIL + surprise * surprise / variance)
    return float(points * np.log(variance) + (TAIL + 1.0) * np.log1p(surprise * surprise / (TAIL * variance)).sum())


def _weights(surprise: FloatArray, floor: float) -> FloatArray:
    variance = max((MAD_TO_SD * float(np.median(np.abs(surprise)))) ** 2, floor)
    weights: FloatArray = (TAIL + 1.0) / (TAIL + surprise * surprise / variance)
    return weights


def _curves(n: int) -> Iterator[tuple[FloatArray, int]]:
    """Smooth curves without a change, as columns (points, columns) and the numbers they have to choose.

    Polynomials of the time and of its logarithm; a straight line with an exponential, in either direction, or a power law.
    """
    place = np.arange(n, dtype=np.float64)
    late = np.log(place + max(1.0, n / 50.0))
    late = 2.0 * (late - late[0]) / (late[-1] - late[0]) - 1.0
    time = np.linspace(-1.0, 1.0, n)
    for axis in (time, late):
        for degree in DEGREES:
            if n > 4 * degree:
                yield np.polynomial.legendre.legvander(axis, degree).astype(np.float64), degree + 1
    for share in SCALES:
        fall = np.exp(-place / (share * n))
        law = 1.0 / np.sqrt(1.0 + place / (0.2 * share * n))
        for shape in (fall, fall[::-1], law, law * law):
            yield np.column_stack([np.ones(n), time, shape]), 4


# Making ready


def _outliers_drawn_in(y: FloatArray) -> FloatArray:
    """Single outliers moved to four sds from the median of their neighbours, for cutting only."""
    middle = centred_median(y, 7)
    off = y - middle
    sd = MAD_TO_SD * float(np.median(np.abs(off)))
    if sd > 0:
        sd = max(sd, 1.25 * float(np.minimum(np.abs(off), 5 * sd).mean()))
        off = np.clip(off, -OUTLIER * sd, OUTLIER * sd)
    return middle + off
