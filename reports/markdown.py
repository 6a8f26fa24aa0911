"""The case as a Markdown post-mortem, for an issue or a wiki: symptom, timeline, evidence, cause, remedy, not checked.

Logged text is escaped so that a name cannot become a heading, a link, a table cell or HTML, and cannot call anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from forensics.model import Case
from forensics.reports import wording
from forensics.reports.shapes import CaseView, EventView, EvidenceView, HypothesisView
from forensics.reports.view import view

MOST_EVIDENCE = 6
"""Facts per side of an explanation; a post-mortem is read by people who have case.json for the rest."""

MOST_CONFIG = 60
"""Settings listed."""

_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_LEADING = re.compile(r"^([#+=>-])|^(\d+)(?=[.)](\s|$))")
_CALL = re.compile(r"(?<![A-Za-z0-9])(@)(?=\w)|(?<=https)(:)(?=//)|(?<=http)(:)(?=//)|(?<=ftp)(:)(?=//)|(?<=www)(\.)", re.IGNORECASE)
"""Where an @name, a URL or a www address starts to be one."""


def render(case: Case, out: TextIO) -> None:
    """Write the post-mortem. Same case in, same bytes out."""
    out.write("\n".join(_document(view(case))).rstrip("\n") + "\n")


def text(logged: str) -> str:
    """Logged text that shows as itself in Markdown, inside a table too."""
    escaped = _SPECIAL.sub(r"\\\1", logged)
    escaped = _LEADING.sub(lambda found: f"{found.group(2)}\\" if found.group(2) else f"\\{found.group(1)}", escaped)
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;")
    # As a character reference it still reads the same, but is no longer taken for a notification or a link.
    return _CALL.sub(lambda found: f"&#{ord(found.group(0))};", escaped)


def code(logged: str) -> str:
    """Logged text as a code span; plain escaped text where a table or a careless renderer could misread the span."""
    return f"`{logged}`" if logged and not set(logged) & set("|<&`\\") else text(logged)


def _document(case: CaseView) -> Iterable[str]:
    yield f"# Post-mortem: {text(case.name)}"
    yield ""
    yield f"**{text(case.verdict)}**"
    yield ""
    yield from _list([f"Run: {code(case.path)}, {case.span}", text(case.coverage), f"Analysed by forensics {text(case.tool_version)}"])
    yield from _timeline(case.events)
    yield from _section("What to do now", [text(sentence) for sentence in case.advice], "")
    for event in case.of("critical", "warning"):
        yield from _event(event)
    yield from _section("Not checked", [f"{text(what)}: {text(why)}" for what, why in case.not_checked], "Everything the catalogue asks for was there.")
    yield from _section("Damaged input", [f"{code(path)}: {text(what)}; lost: {text(lost)}" for path, what, lost in case.damage], "")
    yield from _section("Considered and rejected", [f"{code(cause)} for {text(event)}: {text(why)}" for cause, event, why in case.rejected], "")
    yield from _config(case)
    if case.sources:
        yield from ("", "## Sources", "")
        yield from _table(("File", "Format", "Points", "SHA-256"), [(code(p), text(f), f"{n:,}", code(s)) for p, f, n, s in case.sources])


def _timeline(events: Sequence[EventView]) -> Iterable[str]:
    yield from ("", "## Timeline", "")
    if not events:
        yield "No event."
        return
    rows = [(e.id, e.severity, e.when, f"{e.headline}{f', {e.outcome}' if e.outcome else ''}", _cause(e)) for e in sorted(events, key=lambda e: e.onset_step)]
    yield from _table(("Event", "Severity", "When", "What", "Best explanation"), [tuple(text(c) for c in row) for row in rows])


def _cause(event: EventView) -> str:
    if event.best is not None:
        return f"{event.best.title} ({event.best.score:.2f})"
    return "" if event.severity == "info" else "undetermined"


def _event(event: EventView) -> Iterable[str]:
    yield from ("", f"## {text(event.id)} {text(event.headline)}, {event.when}", "", "### Symptom", "")
    if event.text:
        yield from (text(event.text), "")
    yield from _list([f"{label}: {text(value)}" for label, value in event.numbers])
    if event.batches:
        more = f" and {event.more_batches:,} more" if event.more_batches else ""
        yield "- batches: " + ", ".join(f"{code(batch)} at step {wording.step(step)}" for step, batch in event.batches) + more
    if event.related:
        yield ""
        rows = [(code(r.signal), wording.step(r.onset_step), r.lag, text(r.change)) for r in event.related]
        yield from _table(("Moved too", "From step", "Against the event", "Change"), rows)
    yield from ("", "### Cause", "")
    if event.best is None:
        why = "no explanation stands out from the logs alone" if event.hypotheses else "nothing in the catalogue fits what was logged"
        yield from (f"Undetermined: {why}.", "")
    for number, hypothesis in enumerate(event.hypotheses, 1):
        yield from _hypothesis(number, hypothesis)
    if event.best is not None and event.best.remedy:
        yield from ("", "### Remedy", "", text(event.best.remedy))
    yield from ("", "### Verification", "")
    if event.replay is not None:
        why = f" {text(event.replay.why)}." if event.replay.why else ""
        yield f"Replay: {event.replay.reproduced}, {text(event.replay.verdict)}.{why}"
        found = [f"{what}: {code(which)}" for what, which in event.replay.culprits]
        found += [f"calm with {text(', '.join(event.replay.calm_with))}"] if event.replay.calm_with else []
        if found:
            yield ""
            yield from _list(found)
        if event.replay.experiments:
            yield ""
            yield from _table(("Experiment", "What", "Event", "Reading"), [tuple(text(c) for c in row) for row in event.replay.experiments])
        return
    deciding = dict.fromkeys(h.replay for h in ([event.best] if event.best is not None else event.hypotheses[:2]) if h.replay)
    yield f"Not replayed. To settle it: {text('; or '.join(deciding))}." if deciding else "Not replayed."
    if event.replay_command:
        yield from ("", code(event.replay_command))


def _hypothesis(number: int, hypothesis: HypothesisView) -> Iterable[str]:
    yield f"{number}. **{text(hypothesis.title)}** ({code(hypothesis.cause)}, score {hypothesis.score:.2f}, {hypothesis.role})"
    for label, facts in (("for", hypothesis.supporting), ("against", hypothesis.against)):
        yield from (f"   - {label}: {_fact(f)}" for f in facts[:MOST_EVIDENCE])
    yield from (f"   - missing: {text(m)}" for m in hypothesis.missing)


def _fact(fact: EvidenceView) -> str:
    return f"{text(fact.text)} ({text(fact.place)})" if fact.place else text(fact.text)


def _config(case: CaseView) -> Iterable[str]:
    if not case.config:
        return
    yield from ("", "## Configuration", "")
    yield from _table(("Setting", "Value"), [(code(row.key), text(row.value)) for row in case.config[:MOST_CONFIG]])
    if len(case.config) > MOST_CONFIG:
        yield from ("", f"{len(case.config) - MOST_CONFIG:,} more are in case.json.")


def _section(title: str, rows: Sequence[str], empty: str) -> Iterable[str]:
    if rows or empty:
        yield from ("", f"## {title}", "")
        yield from _list(rows) if rows else (empty,)


def _list(rows: Iterable[str]) -> Iterable[str]:
    return (f"- {row}" for row in rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join(' --- ' for _ in head)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
