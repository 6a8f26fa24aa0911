"""Static drawings of curves as SVG geometry: what a report shows where scripts are off, on paper, and beside each event.

Only numbers leave this module (path data, tick positions); the template turns them into elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from forensics.model import BoolArray, FloatArray, IntArray, Series
from forensics.reports import wording
from forensics.reports.shapes import ChartView

LEFT, RIGHT, TOP, BOTTOM = 66, 10, 18, 22
"""Margins in pixels: room for a tick label, half a step label, the event marks, the step labels. report.js has the same."""

LABEL_ROOM = 34
"""Pixels between two marks that both carry a label."""

LOG_RATIO = 25.0
"""A curve whose top is this many times its median is drawn on a log axis at first: below, a linear one shows the shape better."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis, in pixels."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on the step axis, in pixels: where it starts and how wide it is; ``starts`` is false where it began before the drawing."""

    at: float
    width: float
    event: int
    label: str
    severity: str
    starts: bool
    labelled: bool


@dataclass(frozen=True, slots=True)
class Span:
    """An event's steps, as the axis needs them."""

    event: int
    label: str
    severity: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn curve. ``line`` and ``dots`` are SVG path data; ``broken`` are (x, width, words) of non-finite stretches."""

    width: int
    height: int
    line: str
    dots: str
    broken: tuple[tuple[float, float, str], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    log: bool
    bands: tuple[tuple[float, float, str], ...] = ()
    level: float | None = None
    level_name: str = ""
    falls: tuple[float, ...] = ()

    @property
    def bottom(self) -> int:
        """The y of the step axis."""
        return self.height - BOTTOM


def prefers_log(series: Series, role: str) -> bool:
    """Whether a curve is readable only on a log axis. A loss scale moves in factors of two by design."""
    values = np.asarray(series.values, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if len(finite) == 0 or finite.min() <= 0:
        return False
    return role == "loss_scale" or bool(finite.max() > LOG_RATIO * np.median(finite))


def draw(series: Series, first: int, last: int, width: int, height: int, *, log: bool, spans: tuple[Span, ...] = (), chart: ChartView | None = None) -> Picture:
    """Draw the points of a curve between two steps, at most four a pixel column."""
    steps = np.asarray(series.steps, dtype=np.int64)
    values = np.asarray(series.values, dtype=np.float64)
    near = (steps >= first) & (steps <= last)
    steps, values = steps[near], values[near]
    shown = np.isfinite(values) & ((values > 0) if log else True)
    scale = _Scale.fit(values[shown], height, log)
    x = _across(steps, first, last, width)
    x_ticks = tuple(Tick(round(_across_one(t, first, last, width), 1), wording.step(int(t))) for t in _nice_steps(first, last, width))
    line, dots = _path(x, scale.y(values), shown, steps)
    plain = Picture(width, height, line, dots, _broken(x, values), x_ticks, scale.ticks(), _marks(spans, first, last, width), log)
    return plain if chart is None else _furnished(plain, chart, scale, first, last)


def _furnished(drawn: Picture, chart: ChartView, scale: _Scale, first: int, last: int) -> Picture:
    """The picture with the bands, the level and the falls of its chart that are inside it."""
    bands = []
    for low, high, name in chart.bands:
        if high > first and low < last:
            start, stop = (_across_one(min(max(s, first), last), first, last, drawn.width) for s in (low, high))
            bands.append((round(start, 1), round(max(0.0, stop - start), 1), name))
    level = None
    if chart.level is not None and (chart.level > 0 or not drawn.log):
        y = float(scale.y(np.array([chart.level]))[0])
        level = round(y, 1) if TOP <= y <= drawn.bottom else None
    falls = tuple(round(_across_one(s, first, last, drawn.width), 1) for s in chart.falls if first <= s <= last)
    return replace(drawn, bands=tuple(bands), level=level, level_name=chart.level_name, falls=falls)


@dataclass(frozen=True, slots=True)
class Overlay:
    """Two curves on one pair of axes: SVG path data of each."""

    width: int
    height: int
    below: str
    above: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    @property
    def bottom(self) -> int:
        """The y of the step axis."""
        return self.height - BOTTOM


def overlay(below: Series, above: Series, width: int, height: int) -> Overlay:
    """Draw two curves over the steps of the second one."""
    steps = np.asarray(above.steps, dtype=np.int64)
    first, last = int(steps.min()), int(steps.max())
    pairs = [(np.asarray(s.steps, dtype=np.int64), np.asarray(s.values, dtype=np.float64)) for s in (below, above)]
    inside = [(s[(s >= first) & (s <= last)], v[(s >= first) & (s <= last)]) for s, v in pairs]
    every = np.concatenate([v for _, v in inside])
    scale = _Scale.fit(every[np.isfinite(every)], height, log=False)
    paths = []
    for s, v in inside:
        line, dots = _path(_across(s, first, last, width), scale.y(v), np.isfinite(v), s) if len(s) else ("", "")
        paths.append(line + dots)
    x_ticks = tuple(Tick(round(_across_one(t, first, last, width), 1), wording.step(int(t))) for t in _nice_steps(first, last, width))
    return Overlay(width, height, paths[0], paths[1], x_ticks, scale.ticks())


def strip_marks(spans: tuple[Span, ...], first: int, last: int, width: int) -> tuple[Mark, ...]:
    """The events on a bare axis of the whole run, without margins."""
    return tuple(_mark(s, first, last, 0, width) for s in reversed(spans))


@dataclass(frozen=True, slots=True)
class _Scale:
    """The value axis: linear, or of logarithms to base 10."""

    low: float
    high: float
    height: int
    log: bool

    @classmethod
    def fit(cls, values: FloatArray, height: int, log: bool) -> _Scale:
        if len(values) == 0:
            return cls(0.0, 1.0, height, log)
        low, high = float(values.min()), float(values.max())
        if log:
            low, high = math.log10(low), math.log10(high)
        # Halves first: the difference of two huge values may not be a number.
        pad = 0.06 * (high / 2 - low / 2) * 2 or abs(low) * 0.05 or 0.5
        return cls(low - pad, high + pad, height, log)

    def y(self, values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            shown = np.log10(values) if self.log else values
            share = (shown / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        out: FloatArray = self.height - BOTTOM - share * (self.height - TOP - BOTTOM)
        return out

    def ticks(self) -> tuple[Tick, ...]:
        wanted = max(2, (self.height - TOP - BOTTOM) // 28)
        places = _powers(self.low, self.high, wanted) if self.log else _nice(self.low, self.high, wanted)
        if not places:
            return ()
        return tuple(Tick(round(float(y), 1), wording.tick(v)) for v, y in zip(places, self.y(np.array(places)), strict=True))


def _across(steps: IntArray, first: int, last: int, width: int) -> FloatArray:
    out: FloatArray = LEFT + (steps - first) / max(1, last - first) * (width - LEFT - RIGHT)
    return out


def _across_one(at: float, first: int, last: int, width: int) -> float:
    return LEFT + (at - first) / max(1, last - first) * (width - LEFT - RIGHT)


def _nice(low: float, high: float, wanted: int) -> list[float]:
    """Round values inside a range."""
    room = high / 2 - low / 2
    if not (math.isfinite(room) and room > 0):
        return []
    rough = room / wanted * 2
    power = 10.0 ** math.floor(math.log10(rough))
    if power == 0:
        return []
    unit = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    start, stop = math.ceil(low / unit), math.floor(high / unit)
    return [k * unit for k in range(start, min(stop, start + 50) + 1)]


def _powers(low: float, high: float, wanted: int) -> list[float]:
    """Values for a log axis between two exponents: as many of 1, 2, 5 a decade as there is room for, or round values."""
    every = max(1, math.ceil((high - low) / wanted))
    exponents = [p for p in range(math.floor(low), math.floor(high) + 1) if p % every == 0 and -300 < p < 300]
    for digits in ((1, 2, 5), (1, 3), (1,)):
        places = [m * 10.0**p for p in exponents for m in digits if low <= p + math.log10(m) <= high]
        if len(places) < 2:
            break
        if len(places) <= wanted + 1:
            return places
    return [v for v in _nice(10.0**low, 10.0**high, wanted) if v > 0] if low > -300 and high < 300 else []


def _nice_steps(first: int, last: int, width: int) -> list[float]:
    places = _nice(float(first), float(last), max(2, width // 130))
    return [p for p in places if p == int(p)] or [float(first)]


def _path(x: FloatArray, y: FloatArray, shown: BoolArray, steps: IntArray) -> tuple[str, str]:
    """A polyline that breaks at missing values and where steps go back, and dots for points without a neighbour."""
    if not shown.any():
        return "", ""
    back = np.zeros(len(x), dtype=np.bool_)
    back[1:] = np.diff(steps) <= 0
    piece: IntArray = np.cumsum(back | ~shown, dtype=np.int64)
    x, y, piece = x[shown], y[shown], piece[shown]
    keep = _column_extremes(x, y, piece)
    x, y, piece = x[keep], y[keep], piece[keep]
    fresh = np.ones(len(x), dtype=np.bool_)
    fresh[1:] = np.diff(piece) != 0
    alone = fresh & np.append(fresh[1:], True)
    line = "".join(f"{'M' if new else 'L'}{a:.1f} {b:.1f}" for new, a, b in zip(fresh, x, y, strict=True))
    return line, "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[alone], y[alone], strict=True))


def _column_extremes(x: FloatArray, y: FloatArray, piece: IntArray) -> IntArray:
    """First, lowest, highest and last point of each pixel column of each piece, in order."""
    column = np.floor(x).astype(np.int64)
    edge = np.flatnonzero((np.diff(column) != 0) | (np.diff(piece) != 0)) + 1
    starts = np.concatenate(([0], edge)).astype(np.int64)
    ends = np.concatenate((edge, [len(x)])).astype(np.int64) - 1
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    by_height = np.lexsort((y, group))
    found: IntArray = np.unique(np.concatenate((starts, ends, by_height[starts], by_height[ends])))
    return found


def _broken(x: FloatArray, values: FloatArray) -> tuple[tuple[float, float, str], ...]:
    """Stretches of NaN and Inf; what is closer than two pixels is drawn as one."""
    index = np.flatnonzero(~np.isfinite(values))
    if len(index) == 0:
        return ()
    apart = np.flatnonzero((np.diff(index) > 1) & (np.diff(x[index]) > 2)) + 1
    out = []
    for part in np.split(index, apart):
        words = " and ".join(w for w, found in (("NaN", np.isnan(values[part])), ("Inf", np.isinf(values[part]))) if found.any())
        out.append((round(float(x[part[0]]) - 1, 1), round(float(x[part[-1]] - x[part[0]]) + 2, 1), words))
    return tuple(out)


def _marks(spans: tuple[Span, ...], first: int, last: int, width: int) -> tuple[Mark, ...]:
    """Marks inside the picture, least severe first so that the worst are drawn on top; labels never overlap."""
    out: list[Mark] = []
    taken: list[float] = []
    for span in spans:
        if span.last < first or span.first > last:
            continue
        mark = _mark(span, first, last, LEFT, width - RIGHT)
        free = mark.starts and all(abs(mark.at - other) > LABEL_ROOM for other in taken)
        if free:
            taken.append(mark.at)
        out.append(Mark(mark.at, mark.width, mark.event, mark.label, mark.severity, mark.starts, free))
    return tuple(reversed(out))


def _mark(span: Span, first: int, last: int, left: int, right: int) -> Mark:
    room, steps = right - left, max(1, last - first)
    start = left + (max(span.first, first) - first) / steps * room
    stop = left + (min(span.last, last) - first) / steps * room
    return Mark(round(start, 1), round(max(1.0, stop - start), 1), span.event, span.label, span.severity, starts=span.first >= first, labelled=True)
