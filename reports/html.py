"""The report as one HTML file that opens anywhere: no network, no library, no server.

The page is complete without scripts: every chart is drawn here as SVG, and the script, where it runs, redraws the same
charts with zoom and exact values out of one JSON block. Text is escaped by the template engine, the JSON block by
``_embedded``, and a content security policy allows the two inline blocks by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TextIO

import jinja2
import numpy as np
from markupsafe import Markup

from forensics.model import Case, Series, to_json
from forensics.reports import picture, wording
from forensics.reports.picture import Mark, Overlay, Picture, Span
from forensics.reports.shapes import CaseView, ChartView, EventView
from forensics.reports.thinning import thin
from forensics.reports.view import view

WIDTH, HEIGHT, TALL = 1100, 150, 230
"""Pixels of a chart drawn without scripts; the first chart is the tall one."""

WINDOW_WIDTH, WINDOW_HEIGHT, WINDOW_TALL = 640, 96, 150
"""Pixels of the drawings beside an event."""

WINDOW_POINTS = 60
"""Points drawn before an event's onset and after its end: the calm that the event stands out from."""

MOST_WINDOWS = 4
"""Curves drawn beside one event: its own signal and the three that moved first."""

MOST_DRAWN_EVENTS = 24
"""Events that get drawings; a run with more has one problem, not many."""

POINT_BUDGET = 60_000
"""Points embedded in one file, some 25 bytes each: keeps a report below 2 MB."""

CALM_STEPS = 100
"""Steps around an event's onset and peak that stay whole when a curve is thinned to the budget."""


@dataclass(frozen=True, slots=True)
class ChartPage:
    """A chart with its static drawing."""

    chart: ChartView
    drawing: Picture
    latest: str


@dataclass(frozen=True, slots=True)
class Window:
    """One curve around one event."""

    signal: str
    drawing: Picture


@dataclass(frozen=True, slots=True)
class EventPage:
    """An event with its number on the page and its drawings."""

    number: int
    event: EventView
    windows: tuple[Window, ...]
    replayed: tuple[tuple[str, Overlay], ...] = ()


def render(case: Case, out: TextIO) -> None:
    """Write the page. Same case in, same bytes out."""
    page = view(case)
    spans = tuple(Span(i, e.id, e.severity, e.onset_step, e.last_step) for i, e in enumerate(page.events))
    charts = _fitted(page)
    style, script = _static("report.css"), _static("report.js")
    html = _environment().get_template("report.html.j2").render(
        case=page,
        charts=tuple(_chart_page(c, page, spans) for c in charts),
        events=tuple(EventPage(i, e, _windows(e, page, charts, spans) if i < MOST_DRAWN_EVENTS else (), _overlays(e)) for i, e in enumerate(page.events)),
        strip=_strip(page, spans),
        policy=_policy(style, script),
        style=style,
        script=script,
        data=_embedded(_data(page, charts)),
    )
    out.write(html)
    if not html.endswith("\n"):
        out.write("\n")


def _fitted(page: CaseView) -> tuple[ChartView, ...]:
    """The charts within the point budget; curves over their share are thinned again, events kept whole."""
    share = POINT_BUDGET // max(1, len(page.charts))
    if sum(len(c.series.steps) for c in page.charts) <= POINT_BUDGET:
        return page.charts
    keep = [(s - CALM_STEPS, s + CALM_STEPS) for e in page.events for s in (e.onset_step, e.peak_step)]
    return tuple(c if len(c.series.steps) <= share else replace(c, series=_thinned(c.series, keep, share // 4)) for c in page.charts)


def _thinned(series: Series, keep: Sequence[tuple[int, int]], buckets: int) -> Series:
    return thin(np.asarray(series.steps, dtype=np.int64), np.asarray(series.values, dtype=np.float64), keep, buckets)


def _chart_page(chart: ChartView, page: CaseView, spans: tuple[Span, ...]) -> ChartPage:
    height = TALL if chart.index == 0 else HEIGHT
    log = picture.prefers_log(chart.series, chart.role)
    drawing = picture.draw(chart.series, page.first_step, page.last_step, WIDTH, height, log=log, spans=spans, chart=chart)
    return ChartPage(chart, drawing, f"last: {wording.number(chart.series.values[-1])}")


def _windows(event: EventView, page: CaseView, charts: tuple[ChartView, ...], spans: tuple[Span, ...]) -> tuple[Window, ...]:
    """Before and after the event: its own signal, then those that moved with it, on the same steps."""
    chosen = dict.fromkeys(c for c in (event.chart, *(r.chart for r in event.related)) if c is not None)
    if not chosen and charts:
        chosen = {0: None}
    first, last = _around(event, page, charts[next(iter(chosen))].series) if chosen else (0, 0)
    out = []
    for place, index in enumerate(list(chosen)[:MOST_WINDOWS]):
        chart = charts[index]
        inside = [v for s, v in zip(chart.series.steps, chart.series.values, strict=True) if first <= s <= last]
        if inside:
            log = picture.prefers_log(Series((), tuple(inside)), chart.role)
            height = WINDOW_TALL if place == 0 else WINDOW_HEIGHT
            out.append(Window(chart.signal, picture.draw(chart.series, first, last, WINDOW_WIDTH, height, log=log, spans=spans, chart=chart)))
    return tuple(out)


def _overlays(event: EventView) -> tuple[tuple[str, Overlay], ...]:
    """Logged and replayed curves of an event's replay."""
    curves = event.replay.curves if event.replay is not None else ()
    return tuple((c.signal, picture.overlay(c.logged, c.replayed, WINDOW_WIDTH, WINDOW_TALL)) for c in curves)


def _around(event: EventView, page: CaseView, series: Series) -> tuple[int, int]:
    """The steps to draw around an event: the event and as much calm on both sides, at least ``WINDOW_POINTS`` points."""
    steps = np.unique(np.asarray(series.steps, dtype=np.int64))
    end = event.peak_step if event.end_step is None else event.end_step
    first, last = min(event.onset_step, event.peak_step), max(end, event.peak_step, event.onset_step)
    calm = (last - first) // 2
    before = int(np.searchsorted(steps, first)) - WINDOW_POINTS
    after = int(np.searchsorted(steps, last)) + WINDOW_POINTS
    low = min(first - calm, int(steps[max(0, before)]))
    high = max(last + calm, int(steps[min(len(steps) - 1, after)]))
    return max(page.first_step, low), max(first + 1, min(page.last_step, high))


def _strip(page: CaseView, spans: tuple[Span, ...]) -> tuple[Mark, ...]:
    return picture.strip_marks(spans, page.first_step, page.last_step, 1000)


def _data(page: CaseView, charts: tuple[ChartView, ...]) -> object:
    """What the script draws from: steps as differences (short), values exact."""
    return {
        "first": page.first_step,
        "last": page.last_step,
        "events": [{"id": e.id, "severity": e.severity, "kind": e.kind, "first": e.onset_step, "last": e.last_step} for e in page.events],
        "charts": [
            {"name": c.signal, "steps": [b - a for a, b in zip((0, *c.series.steps), c.series.steps, strict=False)], "values": to_json(c.series.values)}
            | ({"bands": [list(b) for b in c.bands]} if c.bands else {})
            | ({"level": c.level, "levelName": c.level_name} if c.level is not None else {})
            | ({"falls": list(c.falls)} if c.falls else {})
            for c in charts
        ],
    }


def _embedded(data: object) -> Markup:
    """JSON that cannot end its own script block: the three characters HTML looks at are written as escapes."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704 - escaped in this line


def _policy(style: str, script: str) -> str:
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"


def _hash(block: str) -> str:
    digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@functools.cache
def _static(name: str) -> Markup:
    text = resources.files("forensics.reports").joinpath("static", name).read_text(encoding="utf-8")
    return Markup("\n" + text.replace("\r\n", "\n"))  # noqa: S704 - our own file; the line ends are part of its hash


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: resources.files("forensics.reports").joinpath("templates", name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["step"] = wording.step
    environment.filters["count"] = wording.count
    environment.filters["pages"] = _paragraphs
    return environment


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A block of a manual page; ``heading`` where it is one of the fixed headings."""

    text: str
    heading: bool


_HEADINGS = ("What happened", "How it shows in logs", "What would contradict it", "Looks like, but is not", "How to confirm", "Fix", "References")


def _paragraphs(manual: str) -> tuple[Paragraph, ...]:
    """A manual page cut into headings and text blocks, underlines under headings dropped."""
    out: list[Paragraph] = []
    block: list[str] = []

    def close() -> None:
        if block:
            out.append(Paragraph("\n".join(block), heading=False))
            block.clear()

    for row in manual.split("\n"):
        bare = row.strip().strip("#*: ").strip()
        if bare in _HEADINGS:
            close()
            out.append(Paragraph(bare, heading=True))
        elif not bare or set(bare) <= {"-", "=", "~"}:
            close()
        else:
            block.append(row.strip())
    close()
    return tuple(out)
