"""The case in a terminal: the verdict first, then each incident with its best explanation, then what was not looked at.

Everything is written as plain rich ``Text``, never as markup, so that a logged ``[bold]`` stays what it is. Meaning never
hangs on colour alone: severity is also a word and a mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from forensics.model import Case
from forensics.reports import wording
from forensics.reports.shapes import CaseView, EventView, EvidenceView, HypothesisView, RelatedView
from forensics.reports.view import view

WIDEST = 110
"""Columns. Prose in longer lines is hard to follow, however wide the window is."""

PIPE_WIDTH = 80
"""Columns where the output is not a terminal."""

TOP_FOR, TOP_AGAINST, TOP_MISSING = 3, 2, 2
"""Evidence shown per hypothesis; the rest is in the HTML report and in case.json."""

LONGEST_SOURCE = 28
"""Characters of a file name with its record; longer ones keep both ends, where names differ."""

FEW_ALIKE = 3
"""Calm events of one kind in one signal that are listed one by one."""

FIRST_BATCHES, FIRST_RELATED, FIRST_DAMAGE, FIRST_UNCHECKED, FIRST_INFO = 6, 5, 8, 8, 12

_COLOURS = {"critical": "bold red", "warning": "bold yellow", "info": "cyan", "none": "bold green"}
_MARKS = {"critical": "!!", "warning": "! ", "info": "i "}


def render(case: Case, out: TextIO) -> None:
    """Write the terminal view; coloured where ``out`` is a terminal and NO_COLOR is not set."""
    terminal = out.isatty()
    console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=False, width=None if terminal else PIPE_WIDTH)
    console.width = min(console.width, WIDEST)
    with console.capture() as capture:
        _case(console, view(case))
    text = "\n".join(row.rstrip() for row in capture.get().split("\n"))
    encoding = out.encoding if isinstance(getattr(out, "encoding", None), str) else "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _case(console: Console, case: CaseView) -> None:
    console.print(Text(case.verdict, style=_COLOURS[case.severity], overflow="fold"))
    console.print(_joined("  ", [(case.name, "bold"), (case.span, "")], dim_rest=True))
    for event in case.of("critical", "warning"):
        console.print()
        _event(console, event)
    _info(console, case.of("info"))
    _pairs(console, "Not checked", case.not_checked, FIRST_UNCHECKED)
    _pairs(console, "Damaged input", [(path, f"{what}; lost: {lost}") for path, what, lost in case.damage], FIRST_DAMAGE)
    console.print()
    console.print(Text(case.coverage, style="dim", overflow="fold"))


def _event(console: Console, event: EventView) -> None:
    colour = _COLOURS[event.severity]
    head = Text.assemble((f"{_MARKS[event.severity]} {event.id} {event.severity} ", colour), (f"{event.headline}, {event.when}", "bold"), overflow="fold")
    if event.outcome:
        head.append(f", {event.outcome}")
    console.print(head)
    if event.text:
        _row(console, "", Text(event.text))
    confidence = f"confidence {event.confidence:.2f}"
    _row(console, "size", Text(f"{event.change}, {confidence}" if event.change else confidence))
    if event.batches:
        shown = ", ".join(f"{batch} (step {wording.step(step)})" for step, batch in event.batches[:FIRST_BATCHES])
        more = len(event.batches) - FIRST_BATCHES + event.more_batches
        _row(console, "batches", Text(shown + (f" and {more:,} more" if more > 0 else "")))
    if event.related:
        _row(console, "moved too", _related(event.related))
    if event.best is None:
        _undetermined(console, event)
        return
    _hypothesis(console, event.best)
    rivals, helpers = _parted(event.best, event.hypotheses[1:])
    _others(console, "with", helpers[:2])
    _others(console, "or", rivals[:2])


def _related(related: tuple[RelatedView, ...]) -> Text:
    rows = [f"{r.signal} {r.lag}" + (f" ({r.change})" if r.change else "") for r in related[:FIRST_RELATED]]
    more = len(related) - FIRST_RELATED
    return Text("\n".join(rows + ([f"and {more} more"] if more > 0 else [])))


def _undetermined(console: Console, event: EventView) -> None:
    if not event.hypotheses:
        _row(console, "cause", Text("undetermined: no cause in the catalogue fits what was logged", style="bold"))
        return
    _row(console, "cause", Text("undetermined: no explanation stands out from the logs alone", style="bold"))
    _others(console, "possible", event.hypotheses[:3])
    missing = dict.fromkeys(m for h in event.hypotheses[:3] for m in h.missing)
    _row(console, "missing", *((Text("?", style="cyan"), Text(m)) for m in list(missing)[: TOP_MISSING + 1]))
    deciding = dict.fromkeys(h.replay for h in event.hypotheses[:2] if h.replay and not h.replay.startswith("none"))
    _row(console, "tell by", *((Text(">", style="cyan"), Text(d)) for d in deciding))


def _hypothesis(console: Console, best: HypothesisView) -> None:
    _row(console, "cause", Text.assemble((best.title, "bold"), f" [{best.cause}] score {best.score:.2f}, {best.role}"))
    _row(console, "for", *(_fact(f, "+", "green") for f in best.supporting[:TOP_FOR]))
    _row(console, "against", *(_fact(f, "-", "magenta") for f in best.against[:TOP_AGAINST]))
    _row(console, "missing", *((Text("?", style="cyan"), Text(m)) for m in best.missing[:TOP_MISSING]))
    if best.remedy:
        _row(console, "do", Text(best.remedy))
    if best.replay:
        _row(console, "confirm", Text(best.replay))


def _parted(best: HypothesisView, others: tuple[HypothesisView, ...]) -> tuple[list[HypothesisView], list[HypothesisView]]:
    """Rivals of the best explanation, and what may have helped it: the reason for the fragility, or what made it larger, is no rival."""
    helpers = [o for o in others if o.role not in {best.role, "trigger"} and not o.against]
    return [o for o in others if o not in helpers], helpers


def _fact(fact: EvidenceView, mark: str, style: str) -> tuple[Text, Text]:
    text = Text(fact.text)
    place = _place(fact)
    if place:
        text.append(f" ({place})", style="dim")
    return Text(mark, style=style), text


def _place(fact: EvidenceView) -> str:
    """Signal, value, step and record; of the file only its name, since the whole path is in the other reports and rarely in doubt."""
    where = f"{fact.signal} = {fact.value}" if fact.signal and fact.value else fact.signal or (f"value {fact.value}" if fact.value else "")
    step = "" if fact.step is None else f"step {wording.step(fact.step)}"
    source = wording.line(fact.source.rpartition("/")[2], LONGEST_SOURCE)
    return ", ".join(part for part in (where, step, source) if part)


def _others(console: Console, label: str, others: Iterable[HypothesisView]) -> None:
    _row(console, label, *((Text(f"{o.score:.2f}"), Text(f"{o.title} [{o.cause}]")) for o in others))


def _info(console: Console, events: tuple[EventView, ...]) -> None:
    if not events:
        return
    alike: dict[tuple[str, str, str], list[EventView]] = {}
    for event in events:
        alike.setdefault((event.kind, event.signal, _reason(event)), []).append(event)
    shown = [_calm(group) for group in alike.values()]
    more = len(shown) - FIRST_INFO
    console.print()
    _row(console, "also seen", Text("; ".join(shown[:FIRST_INFO]) + (f"; and {more} more" if more > 0 else "")), indent=0)


def _calm(group: list[EventView]) -> str:
    """Calm events of one kind in one signal: each by its step where they are few, else how many and from where to where."""
    first, last = group[0], max(group, key=lambda e: e.onset_step)
    where = f" in {first.signal}" if first.signal else ""
    if len(group) <= FEW_ALIKE:
        return "; ".join(f"{e.id} {e.kind}{where}, {e.when}{_reason(e)}" for e in group)
    return f"{len(group)} times {first.kind}{where}, steps {wording.step(first.onset_step)} to {wording.step(last.onset_step)} ({first.id} ...){_reason(first)}"


def _reason(event: EventView) -> str:
    """Why a calm event came about, where that is known or may be guessed."""
    if event.best is not None:
        return f" ({event.best.title})"
    return f" (perhaps: {event.hypotheses[0].title})" if event.hypotheses else ""


def _pairs(console: Console, title: str, rows: Iterable[tuple[str, str]], first: int) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print()
    console.print(Text(title, style="bold"))
    for what, why in rows[:first]:
        _item(console, f"{what}: {why}" if why else what)
    if len(rows) > first:
        _item(console, f"and {len(rows) - first} more, in the report")


def _item(console: Console, text: str) -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(Text("-"), Text(text, overflow="fold"))
    console.print(Padding(grid, (0, 0, 0, 2)))


def _row(console: Console, label: str, *rows: Text | tuple[Text, Text], indent: int = 3) -> None:
    """A labelled block: texts, or pairs of a mark and a text, one below the other."""
    for number, row in enumerate(rows):
        mark, text = row if isinstance(row, tuple) else (None, row)
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=9, no_wrap=True)
        cells = [Text(label if number == 0 else "", style="dim")]
        if mark is not None:
            grid.add_column(no_wrap=True)
            cells.append(mark)
        grid.add_column(ratio=1, overflow="fold")
        text.overflow = "fold"
        grid.add_row(*cells, text)
        console.print(Padding(grid, (0, 0, 0, indent)))


def _joined(gap: str, parts: list[tuple[str, str]], dim_rest: bool = False) -> Text:
    text = Text(overflow="fold")
    for number, (part, style) in enumerate(p for p in parts if p[0]):
        text.append(gap if number else "")
        text.append(part, style=style or ("dim" if dim_rest else ""))
    return text
