"""A case as plain, safe, ready-to-show data: what the HTML, terminal and Markdown reports have in common.

Everything logged passes through ``wording`` here, so that no report sees a raw name. Numbers stay numbers where a report
draws or compares them, and are text where they are only read.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import replace

from forensics.model import BatchRef, Case, Event, EventKind, Evidence, Hypothesis, Severity, SignalInfo
from forensics.reports import wording
from forensics.reports.redaction import settings
from forensics.reports.replayed import replay_view
from forensics.reports.shapes import CaseView, ChartView, EventView, EvidenceView, HypothesisView, RelatedView, SignalView

SEVERITY_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)

CHART_ROLES = ("loss", "lr", "grad_norm", "loss_scale", "val_loss", "bs")
"""Signals that are drawn whenever they were read, in this order: most incidents can be told from these."""

FIRST_SAMPLES = 4
"""Sample ids shown of one batch; all are in case.json."""

POSITION_ROLES = frozenset(("step", "epoch", "batch_id", "samples", "tokens", "wall_time"))
"""Counters that only rise: drawn where an event points at them, a straight line otherwise."""

MOST_CHARTS = 16
"""More charts on one axis than this cannot be compared by eye; the rest stays in case.json."""

MOST_FALLS = 300
"""Falls of the loss scale that are marked: each is a skipped step."""

MOST_BATCHES = 40
"""Batches listed per event; an event over thousands of steps is not explained by a list."""


_NO_RECOVERY = frozenset(
    (EventKind.RESTART, EventKind.UNFINISHED, EventKind.BATCH_SIZE_CHANGE, EventKind.THROUGHPUT_CHANGE, EventKind.LR_ANOMALY)
) | {EventKind.PLATEAU, EventKind.PERIODIC, EventKind.OVERFITTING, EventKind.DRIFT}
"""Kinds that are not a departure from a level, so that "did not recover" would say nothing."""


_MOMENTS = frozenset((EventKind.RESTART, EventKind.UNFINISHED, EventKind.BATCH_SIZE_CHANGE, EventKind.LOSS_SCALE_DROP))
"""Kinds that happen at a step: without an end they do not last to the end of the run."""


def view(case: Case) -> CaseView:
    """Everything the reports show of a case, most severe event first. Pure; the same case gives the same view."""
    run = case.run
    chosen, undrawn = _charts(case)
    index = {raw: chart.index for raw, chart in chosen.items()}
    first, last = _range(case)
    order = sorted(range(len(case.events)), key=lambda i: (SEVERITY_ORDER.index(case.events[i].severity), case.events[i].onset_step, i))
    events = tuple(_event(case.events[i], f"E{i + 1}", index, last, run.path) for i in order)
    return CaseView(
        verdict=_text(case.verdict) or "No verdict was recorded.",
        name=_name(run.name) or "(unnamed run)",
        path=wording.without_home(_name(run.path)),
        tool_version=_name(case.tool_version),
        span=_span(run.first_step, run.last_step),
        first_step=first,
        last_step=last,
        severity=events[0].severity if events else "none",
        events=events,
        charts=tuple(chosen.values()),
        undrawn=undrawn,
        coverage=_coverage(case),
        signals=tuple(_signal(s) for s in case.signals),
        rejected=tuple((_name(r.cause), _name(r.event), _text(r.why)) for r in case.rejected),
        not_checked=tuple((_text(n.what), _text(n.why)) for n in case.not_checked),
        damage=tuple((wording.without_home(_name(d.path)), _text(d.what), _text(d.lost)) for d in case.damage),
        config=settings(run.config),
        notes=settings(run.notes),
        stability=_stability(case),
        attempts=tuple((a.first_step, a.last_step, a.resumed_from) for a in run.attempts),
        sources=tuple((wording.without_home(_name(s.path)), _name(s.format), s.points, _name(s.sha256 or "")) for s in run.sources),
        advice=tuple(wording.without_home(_text(sentence)) for sentence in case.advice),
    )


def _name(text: str) -> str:
    return wording.line(text, wording.LONGEST_NAME)


def _text(text: str) -> str:
    return wording.line(text)


def _span(first: int | None, last: int | None) -> str:
    return "no steps" if first is None or last is None else f"steps {wording.step(first)} to {wording.step(last)}"


def _range(case: Case) -> tuple[int, int]:
    """First and last step over everything that is drawn; a damaged header must not push a curve off the axis."""
    found = [s for s in (case.run.first_step, case.run.last_step) if s is not None]
    for series in case.series.values():
        if series.steps:
            found += [min(series.steps), max(series.steps)]
    found += [e.onset_step for e in case.events]
    return (min(found), max(found)) if found else (0, 0)


def _charts(case: Case) -> tuple[dict[str, ChartView], int]:
    """The signals to draw by raw name, most telling first, and how many curves were left out."""
    roles = {s.name: s.role or "" for s in case.signals}
    primary = {s.role: s.name for s in reversed(case.signals) if s.role and s.primary}
    ranked = {s.role: s.name for s in reversed(case.signals) if s.role and s.name in case.series}
    wanted = [primary.get(role, ranked.get(role, "")) for role in CHART_ROLES]
    for event in sorted(case.events, key=lambda e: SEVERITY_ORDER.index(e.severity)):
        wanted.append(event.signal)
        wanted += [r.signal for r in event.related]
        wanted += [e.signal for h in event.hypotheses for e in (*h.supporting, *h.against) if e.signal]
    wanted += [name for name in case.series if roles.get(name) not in POSITION_ROLES]
    drawable = [name for name in dict.fromkeys(wanted) if name in case.series and case.series[name].steps]
    return (
        {name: _chart(case, i, name, roles.get(name, "")) for i, name in enumerate(drawable[:MOST_CHARTS])},
        len(drawable[MOST_CHARTS:]),
    )


def _chart(case: Case, index: int, name: str, role: str) -> ChartView:
    """A chart with what belongs to its role: phases of the learning rate, the clip threshold, falls of the loss scale."""
    series = case.series[name]
    plain = ChartView(index, _name(name), _name(role), series)
    if role == "lr":
        return replace(plain, bands=tuple((p.first_step, p.last_step, _name(p.name)) for p in case.run.lr_phases))
    if role == "grad_norm" and case.run.clip is not None:
        return replace(plain, level=case.run.clip, level_name=f"clip {wording.number(case.run.clip)}")
    if role == "loss_scale":
        pairs = zip(series.steps[1:], series.values, series.values[1:], strict=False)
        return replace(plain, falls=tuple(step for step, before, after in pairs if after < before)[:MOST_FALLS])
    return plain


def _event(event: Event, fallback_id: str, charts: Mapping[str, int], last: int, run: str) -> EventView:
    signal = _name(event.signal)
    kind = wording.kind(event.kind)
    hypotheses = tuple(_hypothesis(h, charts) for h in sorted(event.hypotheses, key=lambda h: -h.score))
    return EventView(
        id=_name(event.id) or fallback_id,
        kind=kind,
        severity=event.severity.value,
        confidence=event.confidence,
        signal=signal,
        headline=f"{kind[0].upper()}{kind[1:]} in {signal}" if signal else f"{kind[0].upper()}{kind[1:]}",
        text=_text(event.text),
        when=_when(event),
        onset_step=event.onset_step,
        peak_step=event.peak_step,
        end_step=event.end_step,
        last_step=max(event.onset_step, event.peak_step, _end(event, last)),
        outcome=_outcome(event),
        change=_change(event),
        numbers=_numbers(event),
        batches=tuple((b.step, _batch(b.batch_id) + _samples(b)) for b in event.batches[:MOST_BATCHES]),
        more_batches=max(0, len(event.batches) - MOST_BATCHES),
        related=tuple(
            RelatedView(_name(r.signal), _name(r.role or ""), r.onset_step, wording.lag(r.lag), _text(r.change), charts.get(r.signal))
            for r in sorted(event.related, key=lambda r: (r.onset_step, r.signal))
        ),
        hypotheses=hypotheses,
        undetermined=event.undetermined or not hypotheses,
        replay=replay_view(event.replay) if event.replay else None,
        replay_command="" if event.severity is Severity.INFO else _command(event, run),
        chart=charts.get(event.signal),
    )


def _samples(batch: BatchRef) -> str:
    """The first sample ids of a batch, where they are known."""
    if not batch.samples:
        return ""
    more = len(batch.samples) - FIRST_SAMPLES
    return ": samples " + ", ".join(_name(str(i)) for i in batch.samples[:FIRST_SAMPLES]) + (f" and {more:,} more" if more > 0 else "")


def _batch(batch_id: float | int | str) -> str:
    """An id is a name, not a quantity: no thousands separators, no rounding."""
    whole = isinstance(batch_id, float) and batch_id.is_integer()
    return _name(str(int(batch_id) if whole else batch_id))


def _when(event: Event) -> str:
    onset = wording.step(event.onset_step)
    if event.end_step is None or event.end_step <= event.onset_step:
        return f"step {onset}"
    return f"steps {onset} to {wording.step(event.end_step)}"


def _end(event: Event, last: int) -> int:
    if event.end_step is not None:
        return event.end_step
    passing = event.kind in _MOMENTS or event.recovered or event.severity is Severity.INFO
    return event.peak_step if passing else last


def _outcome(event: Event) -> str:
    if event.recovered:
        return "recovered"
    if event.severity is Severity.INFO or event.kind in _NO_RECOVERY:
        return ""
    return "did not recover" if event.end_step is None else "did not return to its level"


def _change(event: Event) -> str:
    """The size of the event in one phrase."""
    parts = []
    if event.baseline is not None and event.peak is not None:
        height = f" ({wording.signed(event.height)})" if event.height is not None and math.isfinite(event.height) else ""
        parts.append(f"from {wording.number(event.baseline)} to {wording.number(event.peak)}{height}")
    elif event.peak is not None:
        parts.append(f"{wording.number(event.peak)}")
    if event.peak is not None or event.peak_step != event.onset_step:
        parts.append(f"peak at step {wording.step(event.peak_step)}")
    if event.lost_steps is not None:
        parts.append(f"{wording.count(round(event.lost_steps), 'step')} of training lost")
    if event.p_value is not None:
        parts.append(f"p {_p_value(event.p_value)}")
    return ", ".join(parts)


def _p_value(value: float) -> str:
    """Below one in a million all chances are the same to a reader, and no model of noise is that exact."""
    return "< 1e-6" if value < 1e-6 else f"{value:.2g}"


def _numbers(event: Event) -> tuple[tuple[str, str], ...]:
    rows = [("onset", f"step {wording.step(event.onset_step)}")]
    if event.peak is not None or event.peak_step != event.onset_step:
        rows.append(("peak at", f"step {wording.step(event.peak_step)}"))
    if event.end_step is not None:
        rows.append(("end", f"step {wording.step(event.end_step)}"))
    if event.recovered or event.kind not in _NO_RECOVERY:
        rows.append(("recovered", "yes" if event.recovered else "no"))
    for label, value in (("baseline", event.baseline), ("peak", event.peak)):
        if value is not None:
            rows.append((label, wording.number(value)))
    if event.height is not None:
        rows.append(("height", wording.signed(event.height)))
    for label, value in (("rise of the loss", event.height_nats), ("area under it, loss x steps", event.area)):
        if value is not None:
            rows.append((label, wording.number(value)))
    for label, steps in (("recovered after", event.recovery_steps), ("training lost", event.lost_steps)):
        if steps is not None:
            rows.append((label, wording.count(round(steps), "step")))
    if event.p_value is not None:
        rows.append(("p-value", _p_value(event.p_value)))
    rows.append(("confidence", f"{event.confidence:.2f}"))
    return tuple(rows)


def _hypothesis(hypothesis: Hypothesis, charts: Mapping[str, int]) -> HypothesisView:
    return HypothesisView(
        cause=_name(hypothesis.cause),
        title=_text(hypothesis.title) or _name(hypothesis.cause),
        score=min(1.0, max(0.0, hypothesis.score)),
        role=hypothesis.role.value,
        supporting=tuple(_evidence(e, charts) for e in sorted(hypothesis.supporting, key=lambda e: -abs(e.weight))),
        against=tuple(_evidence(e, charts) for e in sorted(hypothesis.against, key=lambda e: -abs(e.weight))),
        missing=tuple(_text(m) for m in hypothesis.missing),
        remedy=_text(hypothesis.remedy),
        replay=_text(hypothesis.replay),
        manual=wording.plain(hypothesis.manual, 4 * wording.LONGEST_TEXT).strip(),
    )


def _evidence(evidence: Evidence, charts: Mapping[str, int]) -> EvidenceView:
    signal, source = _name(evidence.signal or ""), wording.without_home(_name(evidence.source or ""))
    value = "" if evidence.value is None else _name(wording.number(evidence.value))
    parts = [signal if not value else f"{signal} = {value}" if signal else f"value {value}"]
    if evidence.step is not None:
        parts.append(f"step {wording.step(evidence.step)}")
    parts.append(source)
    place = ", ".join(p for p in parts if p)
    return EvidenceView(_text(evidence.text), place, signal, evidence.step, value, source, charts.get(evidence.signal or ""))


def _command(event: Event, run: str) -> str:
    """What settles it, ready to paste; the path without the home folder, quoted for a shell."""
    return f"forensics replay {shlex.quote(wording.without_home(_name(run)))} --event {shlex.quote(_name(event.id))} --recipe recipe.py"


def _signal(info: SignalInfo) -> SignalView:
    steps = "none" if info.first_step is None or info.last_step is None else f"{wording.step(info.first_step)} to {wording.step(info.last_step)}"
    every = "" if info.every is None else wording.number(info.every)
    return SignalView(_name(info.name), _name(info.role or ""), info.points, steps, every, info.non_finite, info.primary)


def _stability(case: Case) -> tuple[tuple[str, str], ...]:
    score = case.run.stability_score
    rows = (
        ("loss points beyond 7 sd of the last 1,000", score.loss_7sd_1000),
        ("grad norm points beyond 7 sd of the last 1,000", score.grad_norm_7sd_1000),
        ("loss points beyond 6 sd of the last 128", score.loss_6sd_128),
        ("grad norm points beyond 6 sd of the last 128", score.grad_norm_6sd_128),
        ("skipped steps", score.skipped_share),
    )
    shares = tuple((label, f"{value:.4%}") for label, value in rows if value is not None)
    return shares if score.lost_steps is None else (*shares, ("steps of training lost to events", wording.count(round(score.lost_steps), "step")))


def _checkpoints(case: Case) -> str:
    """How many checkpoints were read, and from which one on they are bad."""
    found = case.run.checkpoints
    if not found:
        return ""
    bad = [c for c in found if c.health == "bad"]
    text = wording.count(len(found), "checkpoint")
    if not bad:
        unread = sum(c.health == "not read" for c in found)
        return text + (f", the numbers of {unread} not read" if unread else ", all sound")
    first = next((c.step for c in bad if c.step is not None), None)
    good = [c.step for c in found if c.health == "good" and c.step is not None and (first is None or c.step < first)]
    text += f", {len(bad)} bad" + ("" if first is None else f", the first at step {first:,}")
    return text + (f", the last sound one before it at step {max(good):,}" if good else "")


def _coverage(case: Case) -> str:
    """How much was read, and how much was not."""
    run = case.run
    points = sum(s.points for s in run.sources) or sum(s.points for s in case.signals)
    known = sum(1 for s in case.signals if s.role)
    parts = [
        f"Read {wording.count(points, 'point')} of {wording.count(len(case.signals), 'signal')} ({known} recognised)"
        + (f" from {wording.count(len(run.sources), 'source')}" if run.sources else ""),
        _span(run.first_step, run.last_step),
        wording.count(len(run.attempts), "attempt") if run.attempts else "",
        _checkpoints(case),
        f"{wording.count(len(case.damage), 'damaged part')} not read" if case.damage else "nothing damaged",
        f"{wording.count(len(case.not_checked), 'thing')} not checked" if case.not_checked else "",
    ]
    return "; ".join(p for p in parts if p) + "."
