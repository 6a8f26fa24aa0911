"""Where a curve rises above its recent past, at every time scale, in linear time.

The curve is looked at on a pyramid: every point, then medians of 4, 16, 64 ... points. On each level a short window after
a point is compared with the window before it. A falling curve makes the window before it too high, which only hides rises,
never invents one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from forensics.model import FloatArray, IntArray
from forensics.primitives.robust import (
    LONG,
    MAD_TO_SD,
    STRETCH,
    STRETCHES,
    around_slow_course,
    block_medians,
    centred_median,
    forward_median,
    pieces,
    slow_median,
    slow_trailing,
    stretches,
)
from forensics.primitives.tails import FEW, Tail

BEFORE = 24
"""Blocks in the window before a point."""

WINDOWS = (2, 4, 8)
"""Blocks in the window after a point; together with the factor 4 between levels, every duration within a factor 2."""

FACTOR = 4
"""Points of one level that make a block of the next."""

LIGHTEST = {1: 0.0, 2: 12.0, 4: 30.0, 8: 50.0}
"""Degrees of freedom that a window cannot fall below: the smaller of two, or the median of several, has a light tail."""

PAST = 64
"""Blocks before a piece that its first baselines are taken from."""

BASELINE = 51
"""Scores around a centre that their tail is measured from."""

SCORE = 4.0
"""Smallest robust z that is looked at; what counts is decided by the tail of the run itself."""

CHANCE = 0.01
"""Accepted chance per run and curve that the largest healthy fluctuation is taken for a rise."""

GIANT, SMALL_GIANT, GIANT_RATIO = 10.0, 8.0, 2.0
"""Robust z of a single point that no healthy curve was seen to reach, on a short curve, and how many times its deepest fall it must be."""

GIANT_DEGREES = 12.0
"""Degrees of freedom that the lower tail is not taken to exceed: nobody knows it that far out."""

FIRST_POINTS = 12
"""Points in which a jump is looked for without a window before it."""

BLOW_UP, BLOW_UP_SDS = 0.4, 8.0
"""Height of such a jump over everything before it, held for two points: in log units (a factor of 1.5) and in usual steps."""

LONE_BEFORE, MANY = 8, 2000
"""Points before a lone giant that it is compared with, and how many are looked at."""

TINY = 1e-9
"""Relative noise below which a curve is constant; keeps divisions finite."""

MEDIAN_LOSS = 1.57
"""Variance of a median relative to a mean, for normal noise."""

TOWERS = 3.0
"""Heights of the rise before that a later one must have to be an event of its own."""

SETTLED = 2
"""Windows after which a rise that never ends has become the level of the curve."""

ABRUPT, FLAT = 0.5, 0.15
"""Share of its height that a tower on a rise that never ends has within three points, and by which the level before it may have
moved: growth has neither."""

FEWEST_BEFORE = 3
"""A rise needs this many points before it, or there is nothing it rose from."""

SUDDEN, TREMBLE = 0.6, 3.0
"""Share of the height of a rise that came within its first step; what precedes it then belongs to it only if the curve trembles there,
by steps this many times those of the smooth descent."""

FEWEST_STEPS, UNSETTLED = 7, 3.0
"""Steps that show how smoothly a curve falls, and the robust z of a step up that ends it."""

BRIDGE = 2.5
"""Sds that a point before a gap must be raised by to belong to the rise."""

LAST = 10
"""A rise whose peak is within this many points of the end was still growing when the log stopped."""

YOUNG = 50
"""Before this many points the noise is not known well; the onset is then placed by the curve's own minimum."""

SHARP = 16
"""Windows up to this many points place an onset exactly."""

BLURRED = 64
"""Up to this width a rise may still have a sharp edge that only its noise hides."""

CALM_POINTS, MINOR = 4, 0.5
"""Points at the baseline that part a small rise from a larger one after it, and the share of its height that is small."""

LOOK = 1024
"""Points after an onset in which its end is looked for first; twice as many the next time."""

LOWEST = -1e300
"""The score of a value that has nothing before it."""

MIN_BLOCKS = 20
"""A level with fewer blocks says nothing."""


@dataclass(frozen=True, slots=True)
class Rise:
    """``onset`` is the first point above the baseline ``base`` (both on the comparison scale); ``score`` a robust z.

    ``end`` is the first point back at the baseline, None if it never comes back; ``width`` the window that saw it, in points;
    ``top`` the highest level it held for that window, which one outlier cannot raise.
    """

    onset: int
    peak: int
    end: int | None
    base: float
    top: float
    score: float
    p_value: float
    width: int


def find_rises(u: FloatArray, noise: FloatArray, limit: int = 200, *, generous: bool = False) -> list[Rise]:
    """Rises of a curve in order of onset, none inside another. ``u`` and ``noise`` as in Prepared, shape (points,).

    Sharp windows are settled before wide ones, because they place the onset exactly; a wide window then only adds what no
    sharp one has explained. ``generous``: single points are judged by the lower tail alone, for signals whose outliers are only noted.
    """
    n = len(u)
    if n < 6:
        return []
    found: list[Rise] = []
    taken = np.zeros(n, dtype=bool)
    for candidate in sorted(_candidates(u, noise, generous), key=lambda c: (c.width > SHARP, c.block, -c.score)):
        if len(found) >= limit:
            break
        if taken[max(0, candidate.start - candidate.block) : candidate.start + min(candidate.width, 8 * candidate.block) + 1].any():
            continue
        rise = _extent(u, noise, candidate)
        if rise is None or taken[rise.onset]:
            continue
        found.append(rise)
        taken[max(0, rise.onset - 2) : _claimed(rise, n) + 1] = True
    return _outermost(u, sorted(found, key=lambda r: r.onset))


def _claimed(rise: Rise, n: int) -> int:
    """Up to where a rise explains others. Where it stays up it becomes the level that later ones rise from, as soon as a window fits."""
    settled = rise.onset + SETTLED * max(rise.width, BEFORE)
    return min(settled, n) if rise.end is None else rise.end


def _outermost(u: FloatArray, rises: list[Rise]) -> list[Rise]:
    """A rise that begins before another one is over contains it, unless the later one is sharp and towers over it: then both stand."""
    kept: list[Rise] = []
    for rise in rises:
        if kept and rise.onset < (len(u) if kept[-1].end is None else kept[-1].end):
            outer = kept[-1]
            peak = outer.onset + int(np.argmax(u[outer.onset : max(rise.onset, outer.onset + 1)]))
            if not _stands_out(u, rise, outer, float(u[peak] - outer.base)):
                continue
            kept[-1] = replace(outer, peak=peak)
        kept.append(rise)
    return kept


def _stands_out(u: FloatArray, rise: Rise, outer: Rise, outer_height: float) -> bool:
    """A sharp rise inside another is an event of its own if it towers over it; on a level reached long before, if it is a giant."""
    height = float(u[rise.peak] - rise.base)
    if rise.width > SHARP:
        return False
    if outer.end is not None:
        return height >= TOWERS * outer_height
    abrupt = float(u[rise.onset : rise.onset + 3].max()) - rise.base >= ABRUPT * height
    before = u[max(outer.onset, rise.onset - BEFORE) : rise.onset]
    settled = len(before) >= 8 and abs(float(np.median(before[-4:]) - np.median(before[:4]))) <= FLAT * height
    return abrupt and settled and height >= outer_height / TOWERS and rise.score >= GIANT


@dataclass(frozen=True, slots=True)
class _Candidate:
    start: int
    width: int
    block: int
    score: float
    p_value: float


def _candidates(u: FloatArray, noise: FloatArray, generous: bool = False) -> list[_Candidate]:
    """Every window that stands out of what this curve does by itself."""
    levels: list[tuple[int, FloatArray, FloatArray]] = [(1, u, noise)]
    steady = MAD_TO_SD * float(np.median(np.abs(np.diff(stretches(u))))) / math.sqrt(2.0)
    least = TINY * max(1.0, float(np.median(np.abs(stretches(u)))))
    while len(levels[-1][1]) >= FACTOR * MIN_BLOCKS:
        block, level, _ = levels[-1]
        coarse = block_medians(level, FACTOR)
        levels.append((block * FACTOR, coarse, _level_noise(coarse, max(steady * math.sqrt(MEDIAN_LOSS / (block * FACTOR)), least))))
    tests = len(levels) * (len(WINDOWS) + 1)
    out = [*_lone_giants(u, noise, generous), *_blow_up(u)]
    for block, level, sd in levels:
        several = WINDOWS if len(level) < LONG else WINDOWS[:-1]  # the next level's shortest window is as long as the longest
        windows = [w for w in ((1, *several) if block == 1 else several) if len(level) >= 2 * w]
        singles = _Singles(level, sd)
        for window, seen in _scored(level, sd, windows).items():
            out.extend(_judge(seen, window, block, tests, None if window == 1 else singles))
    return out


@dataclass(slots=True)
class _Seen:
    """What the scores of one window on one level of ``points`` blocks show: their local maxima, and a sample for the shape of their tail."""

    points: int
    peaks: list[tuple[int, float]]
    sample: list[FloatArray]


def _scored(level: FloatArray, sd: FloatArray, windows: Sequence[int]) -> dict[int, _Seen]:
    """Scores of every window, piece by piece: only what stands out and a sample of the rest is kept."""
    out = {window: _Seen(len(level), [], []) for window in windows}
    cut = list(pieces(len(level), PAST, max(WINDOWS) + 1))
    share = max(STRETCHES // len(cut), 1) * STRETCH if len(cut) > 1 else len(level)
    every = max(1, len(cut) // STRETCHES)
    for number, piece in enumerate(cut):
        part, spread = level[piece.around], sd[piece.around]
        before = slow_trailing(part, BEFORE, min(4, max(1, len(level) // 3)) if 1 in windows else 4)
        for window, seen in out.items():
            scores = _point_scores(part, before, spread) if window == 1 else _window_scores(part, before, spread, window)
            if piece.high < len(level):
                scores = scores[: piece.inner.stop + 1]
            seen.peaks += [(piece.low + i - piece.inner.start, float(scores[i])) for i in _peaks(scores).tolist() if piece.inner.start <= i < piece.inner.stop]
            if number % every == 0:
                seen.sample.append(around_slow_course(scores[piece.inner][:share], BASELINE))
    return out


def _lone_giants(u: FloatArray, noise: FloatArray, generous: bool) -> list[_Candidate]:
    """Single points far above anything a symmetric noise of this curve could do, judged by how far it ever went down.

    A curve with many smaller outliers upwards has a heavy upper tail, in which even the largest of them looks possible; its lower
    tail is free of them. The geometric mean of the two chances weighs both.
    """
    scores = point_scores(u, noise)
    likely = np.flatnonzero(scores >= GIANT / 2)
    scores[likely] = [max(scores[i], _lone_score(u, noise, i)) for i in likely[:MANY].tolist()] + scores[likely[MANY:]].tolist()
    high = likely[scores[likely] >= (GIANT if len(scores) >= FEW + BEFORE else SMALL_GIANT)]
    if len(high) == 0 or len(scores) < 2 * BEFORE:
        return []
    known = np.nan_to_num(scores, nan=0.0)
    deepest = float((slow_median(known, BASELINE) - known)[BEFORE:].max())
    around = around_slow_course(known, BASELINE)[BEFORE:]
    upper, lower = Tail(around), Tail(-around, ceiling=np.inf if generous else GIANT_DEGREES)
    out = []
    for i in high[scores[high] >= GIANT_RATIO * deepest].tolist():
        p_value = lower.p_value(float(scores[i]), len(scores))
        p_value = p_value if generous else math.sqrt(p_value * upper.p_value(float(scores[i]), len(scores)))
        if p_value <= CHANCE:
            out.append(_Candidate(i, 1, 1, float(scores[i]), p_value))
    return out


def _blow_up(u: FloatArray) -> list[_Candidate]:
    """A jump in the first points, where there is too little before it for any window: judged by the steps of the whole curve."""
    if len(u) < 8:
        return []
    usual = MAD_TO_SD * float(np.median(np.abs(np.diff(stretches(u))))) / math.sqrt(2.0)
    for i in range(2, min(FIRST_POINTS, len(u) - 1)):
        height = min(float(u[i]), float(u[i + 1])) - float(np.max(u[:i]))
        if height >= BLOW_UP and height >= BLOW_UP_SDS * usual:
            return [_Candidate(i, 2, 1, min(height / max(usual, TINY), 1e6), Tail(np.empty(0)).p_value(BLOW_UP_SDS, len(u)))]
    return []


def _lone_score(u: FloatArray, noise: FloatArray, at: int) -> float:
    """Robust z of one point against the few points before it: on a curve that falls steeply the longer window is far too high."""
    before = u[max(0, at - LONE_BEFORE) : at]
    if len(before) < LONE_BEFORE:
        return 0.0
    return float((u[at] - np.median(before)) / (noise[at] * math.sqrt(1 + MEDIAN_LOSS / LONE_BEFORE)))


class _Singles:
    """Standardised single values of a level: how often one of them, alone, lies above a height."""

    def __init__(self, level: FloatArray, sd: FloatArray) -> None:
        self._level, self._sd = level, sd

    @cached_property
    def z(self) -> FloatArray:
        scores: FloatArray = np.nan_to_num((self._level - slow_trailing(self._level, BEFORE, 4)) / self._sd, nan=LOWEST)
        return scores

    @cached_property
    def ordered(self) -> FloatArray:
        return np.sort(self.z)

    @cached_property
    def tail(self) -> Tail:
        return Tail(around_slow_course(np.where(self.z > LOWEST, self.z, np.nan), BASELINE))

    def chance(self, height: float, surroundings: slice) -> float:
        """Share of values above ``height`` outside the surroundings; the tail's estimate where fewer than two are."""
        n = len(self.z)
        above = n - int(np.searchsorted(self.ordered, height)) - int((self.z[surroundings] >= height).sum())
        return above / n if above >= 2 else self.tail.p_value(height, 1.0)

    def _surroundings(self, start: int, window: int) -> slice:
        """The window and the whole stretch around it that has not calmed: one event, not other outliers."""
        reach = LOOK
        while True:
            low, high = max(0, start - reach), min(len(self.z), start + 2 * window + reach)
            calm = low + np.flatnonzero(forward_median(self.z[low : high + FACTOR - 1], FACTOR)[: high - low] < 1.0)
            before, after = calm[calm <= start - window], calm[calm >= start + 2 * window]
            if (len(before) or low == 0) and (len(after) or high == len(self.z)):
                return slice(int(before[-1]) if len(before) else 0, int(after[0]) if len(after) else len(self.z))
            reach *= 4

    def cluster(self, start: int, window: int) -> float:
        """Chance that ordinary outliers of this level meet as in the window: the least likely of its upper order statistics."""
        heights = np.sort(self.z[start : start + window])[::-1]
        least = 2 if window == 2 else window // 2
        around = self._surroundings(start, window)
        chances = [_at_least(k, window, self.chance(float(heights[k - 1]), around)) for k in range(least, len(heights) + 1)]
        return min(1.0, min(chances) * len(chances)) if chances else 1.0


def _at_least(count: int, of: int, chance: float) -> float:
    """Upper tail of the binomial distribution."""
    return float(sum(math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(count, of + 1)))


def point_scores(u: FloatArray, noise: FloatArray) -> FloatArray:
    """Robust z of each point against the points before it; the first few are compared with what there is."""
    return _point_scores(u, slow_trailing(u, BEFORE, min(4, max(1, len(u) // 3))), noise)


def _point_scores(u: FloatArray, before: FloatArray, noise: FloatArray) -> FloatArray:
    scores: FloatArray = (u - before) / (noise * np.sqrt(1 + MEDIAN_LOSS / BEFORE))
    return scores


def _window_scores(level: FloatArray, before: FloatArray, sd: FloatArray, window: int) -> FloatArray:
    after = np.minimum(level, np.append(level[1:], np.nan)) if window == 2 else forward_median(level, window)
    after[len(level) - window + 1 :] = np.nan
    spread = sd * np.sqrt((1.0 if window == 2 else MEDIAN_LOSS / window) + MEDIAN_LOSS / BEFORE)
    scores: FloatArray = (after - before) / spread
    return scores


def _judge(seen: _Seen, window: int, block: int, tests: int, singles: _Singles | None) -> list[_Candidate]:
    """Local maxima of a score that neither its own tail nor a cluster of the curve's ordinary outliers explains."""
    if not seen.peaks:
        return []
    tail = Tail(np.concatenate(seen.sample), LIGHTEST[window])
    trials = seen.points / window * tests
    out = []
    for i, score in seen.peaks:
        p_value = tail.p_value(score, trials)
        if singles is not None and p_value <= CHANCE:
            p_value = max(p_value, min(1.0, singles.cluster(i, window) * trials))
        if p_value <= CHANCE:
            out.append(_Candidate(i * block, window * block, block, score, p_value))
    return out


def _peaks(scores: FloatArray) -> IntArray:
    """Places of local maxima of at least SCORE; NaN counts as low."""
    high = np.flatnonzero(scores >= SCORE)
    before, after = scores[np.maximum(high - 1, 0)], scores[np.minimum(high + 1, len(scores) - 1)]
    return high[~(before > scores[high]) & ~(after > scores[high])]


def _level_noise(level: FloatArray, least: float) -> FloatArray:
    """Noise of block medians, measured on them, so that correlated noise is not mistaken for change; at least what single points show."""
    residual = level - centred_median(level, 9)
    own = MAD_TO_SD * slow_median(np.abs(residual), 101) * 1.15
    noise: FloatArray = np.maximum(own, least)
    return noise


def _extent(u: FloatArray, noise: FloatArray, candidate: _Candidate) -> Rise | None:
    """Onset, peak and end of a candidate at full resolution."""
    n, block, width = len(u), candidate.block, candidate.width
    start = _half_way(u, candidate.start, width) if block == 1 else _locate(u, candidate.start, width)
    history = u[max(0, start - BEFORE * block) : start]
    if len(history) == 0:
        return None
    base = float(min(np.median(history), np.median(history[-8 * block :])))
    # The noise after a change may be far smaller; what is raised is told by the noise before it.
    sd = max(float(noise[start]), _step_noise(history[-BEFORE:]))
    onset = _onset(u, start, base, sd, width)
    if onset < FEWEST_BEFORE <= start and block == 1:
        onset = _after_descent(u, start, base, sd)
    if block == 1:
        onset, base = _walk_down(u, onset, base, sd)
    horizon = u[onset:]
    calm = min(10 * block, max(3, len(horizon) // 4))
    top = float(np.max(forward_median(horizon[: max(width, 2) + calm], calm)[: max(width, 2)])) if block > 1 else float(np.max(horizon[: max(width * 2, 2)]))
    if top <= base or onset < (2 if candidate.width == 2 else FEWEST_BEFORE):
        return None
    limit = base + max(sd / np.sqrt(block), 0.15 * (top - base))
    end = _back(u, onset, calm, limit, base + 3 * sd)
    stop = n if end is None else max(end, onset + 1)
    peak = onset + int(np.argmax(u[onset:stop]))
    if block == 1:
        onset = _after_calm(u, (onset, peak), base, sd)
    if end is None and n - peak <= LAST and onset < YOUNG and u[peak] - base > 10 * sd:
        onset = min(onset, _last_calm(u, peak, sd))
    if onset < YOUNG:
        onset = _unsettled(u, onset, TREMBLE if float(u[onset] - u[onset - 1]) >= SUDDEN * (top - base) else 0.0)
    return Rise(onset, peak, end, base, top, candidate.score, candidate.p_value, width)


def _after_calm(u: FloatArray, span: tuple[int, int], base: float, sd: float) -> int:
    """Where the rise proper begins if a small one came before it and the curve was calm in between."""
    onset, peak = span
    low = u[onset:peak] <= base + 2 * sd
    if not low.any() or peak - onset > LOOK:
        return onset
    last = int(np.flatnonzero(low)[-1])
    first = last
    while first > 0 and low[first - 1]:
        first -= 1
    small = first == 0 or float(u[onset : onset + first].max()) - base < MINOR * float(u[peak] - base)
    return onset + last + 1 if last - first + 1 >= CALM_POINTS and small else onset


def _back(u: FloatArray, onset: int, calm: int, limit: float, highest: float) -> int | None:
    """The first point after ``onset`` that is low, as is the median of ``calm`` points from it on; looked for further and further away."""
    low, reach = onset + 1, LOOK
    while low < len(u):
        part = u[low : low + reach + calm - 1]
        below = np.flatnonzero((forward_median(part, calm)[:reach] <= limit) & (part[:reach] <= highest))
        if len(below):
            return low + int(below[0])
        low, reach = low + reach, 2 * reach
    return None


def _half_way(u: FloatArray, start: int, width: int) -> int:
    """Where a sharp rise passes half its height: a score may be largest later, where the new level is calmer than the old one."""
    first = max(FEWEST_BEFORE, start - BEFORE)
    base = float(np.median(u[max(0, first - BEFORE) : first]))
    middle = 0.5 * (base + float(np.median(u[start : start + width])))
    while start > first and u[start - 1] >= middle > base:
        start -= 1
    return start


def _locate(u: FloatArray, start: int, width: int) -> int:
    """Where a wide rise begins: the better of a step and a hinge fitted around it (least squares)."""
    low, high = max(0, start - 2 * width), min(len(u), start + 2 * width)
    stride = max(1, (high - low) // 512)
    y = u[low:high:stride]
    m = len(y)
    if m < 8:
        return start
    total = np.cumsum(y)
    k = np.arange(1, m)
    gain = (total[:-1] / k - (total[-1] - total[:-1]) / (m - k)) ** 2 * k * (m - k) / m
    step = int(np.argmax(gain)) + 1
    step_error = float(((y - y.mean()) ** 2).sum() - gain[step - 1])
    best, hinge_error = step, step_error
    x = np.arange(m, dtype=np.float64)
    for knot in range(0, m - 4, max(1, m // 64)):
        ramp = np.maximum(0.0, x - knot)
        ramp -= ramp.mean()
        slope = float(ramp @ y) / float(ramp @ ramp)
        error = float(((y - y.mean() - slope * ramp) ** 2).sum())
        if slope > 0 and error < hinge_error:
            best, hinge_error = knot, error
    return low + best * stride


def _onset(u: FloatArray, start: int, base: float, sd: float, width: int) -> int:
    """The first clearly raised point near the start, walked back over points that are already raised."""
    low = max(0, start - 8)
    z = (u[low : start + 8] - base) / sd
    strong = np.flatnonzero(z >= 4)
    if len(strong) == 0:
        return _edge(u, low, start + width, base) if width <= BLURRED else start
    return _walk_back(u, low + _joined(z, strong, start - low), base, sd)


def _joined(z: FloatArray, strong: IntArray, start: int) -> int:
    """The first strong point that the start is joined to: between an outlier before the event and the event the curve is calm."""
    first = int(strong[np.argmin(np.abs(strong - start))])
    for k in strong[strong < first][::-1].tolist():
        if (z[k + 1 : first] < 2).sum() > 0.5 * (first - k):
            break
        first = k
    return first


def _after_descent(u: FloatArray, start: int, base: float, sd: float) -> int:
    """In a short steep curve the points of the descent lie above the level too: walk back only to the last calm point."""
    calm = np.flatnonzero(u[:start] < base + 2 * sd)
    raised = np.flatnonzero(u[start : start + 8] >= base + 4 * sd)
    return max(int(calm[-1]) + 1 if len(calm) else 0, start) + (int(raised[0]) if len(raised) else 0)


def _walk_back(u: FloatArray, first: int, base: float, sd: float) -> int:
    """Back over points that are already raised; one point in between may have fallen back by chance."""
    while first > 0:
        if u[first - 1] >= base + 2 * sd:
            first -= 1
        elif first > 1 and u[first - 2] >= base + BRIDGE * sd and u[first - 1] > base:
            first -= 2
        else:
            break
    return first


def _unsettled(u: FloatArray, onset: int, tremble: float) -> int:
    """In the first steep descent: the first step up that the smooth fall before it does not explain, if shortly before the rise.

    A lone step up after which the descent went on to lower values was noise of its own, and so was one that nothing trembled after.
    """
    steps = np.diff(u[: onset + 1])
    odd: list[int] = []
    for k in range(max(FEWEST_STEPS, onset - 12), onset):
        before = steps[: k - 1]
        spread = max(MAD_TO_SD * float(np.median(np.abs(before - np.median(before)))), TINY)
        up = steps[k - 1] > 0 and steps[k - 1] > float(np.median(before)) + UNSETTLED * spread
        if up and float(np.median(np.abs(steps[k - 1 : onset - 1]))) >= tremble * spread:
            odd.append(k)
    if not odd or (len(odd) == 1 and float(u[odd[0] : onset].min()) < float(u[odd[0] - 1])):
        return onset
    return odd[0]


def _walk_down(u: FloatArray, onset: int, base: float, sd: float) -> tuple[int, float]:
    """Growth over many points puts its own beginning into the level before: go on while that level still falls."""
    while onset > FEWEST_BEFORE:
        history = u[max(0, onset - BEFORE) : onset]
        lower = float(np.median(history))
        if lower >= base - 0.5 * sd:
            break
        base = lower
        onset = _walk_back(u, onset, base, sd)
    return onset, base


def _edge(u: FloatArray, low: int, high: int, base: float) -> int:
    """The sharpest edge: points after it high, the first ones most, and points before it at the baseline."""
    y = u[max(0, low - 4) : high + 8] - base
    offset = max(0, low - 4)
    after = 1.0 / (1.0 + np.arange(8) / 4.0)
    before = np.array([1.0, 0.8, 0.6, 0.4])
    best, top = low, -np.inf
    for t in range(low, min(high, len(u))):
        k = t - offset
        ahead, behind = y[k : k + 8], y[max(0, k - 4) : k][::-1]
        value = float(after[: len(ahead)] @ ahead) - float(before[: len(behind)] @ behind)
        if value > top:
            best, top = t, value
    return best


def _last_calm(u: FloatArray, peak: int, sd: float) -> int:
    """For a rise that never ends: the first point after the curve's minimum from which it stays above it until the peak."""
    lowest = int(np.argmin(u[: peak + 1]))
    above = u[lowest : peak + 1] > u[lowest] + 3 * min(sd, _early_noise(u[: lowest + 1], sd))
    not_yet = np.flatnonzero(~above)
    return lowest + int(not_yet[-1]) + 1 if len(not_yet) else lowest


def _step_noise(history: FloatArray) -> float:
    """Noise of some points, measured on their steps: a trend does not enter."""
    if len(history) < 6:
        return 0.0
    steps = np.diff(history)
    return MAD_TO_SD * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2.0)


def _early_noise(history: FloatArray, fallback: float) -> float:
    if len(history) < 6:
        return fallback
    return max(1e-3, MAD_TO_SD * float(np.median(np.abs(np.diff(history)))) / float(np.sqrt(2.0)))
