"""Two runs side by side in a terminal: the verdict, where they part, which settings differ, what both did at one step."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from forensics.model import to_json
from forensics.model.comparison import Comparison, Difference, Parting, SameStep
from forensics.model.words import chance
from forensics.reports import wording

WIDTH = 100
"""Columns of prose."""

FIRST_SETTINGS, FIRST_STEPS, LONGEST_VALUE = 20, 12, 40


def render(found: Comparison, out: TextIO) -> None:
    """Write the comparison as plain text. Logged text is made harmless first."""
    rows = [
        *textwrap.wrap(wording.line(found.verdict), WIDTH),
        "",
        f"A  {_side(found.a.name, found.a.path)}, {_span(found.a.first_step, found.a.last_step)}",
        *_indented(found.a.verdict),
        f"B  {_side(found.b.name, found.b.path)}, {_span(found.b.first_step, found.b.last_step)}",
        *_indented(found.b.verdict),
        "",
        *textwrap.wrap(wording.line(f"Data order: {found.data_order.value} ({found.data_order_why})"), WIDTH),
    ]
    rows += _partings(found.partings)
    rows += _settings(found.settings, found.same_settings)
    rows += _steps(found.same_steps, found.chance)
    if found.not_checked:
        rows += ["", "Not checked", *(f"  - {wording.line(text)}" for text in found.not_checked)]
    text = "\n".join(rows) + "\n"
    encoding = out.encoding if isinstance(getattr(out, "encoding", None), str) else "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def render_json(found: Comparison, out: TextIO) -> None:
    """Write the comparison as strict JSON, schema ``forensics-compare/1``."""
    json.dump(to_json(found), out, indent=1, sort_keys=True, allow_nan=False)
    out.write("\n")


def _side(name: str, path: str) -> str:
    return wording.line(f"{name} ({wording.without_home(path)})" if name != path else name, wording.LONGEST_NAME)


def _span(first: int | None, last: int | None) -> str:
    return "no steps" if first is None or last is None else f"steps {wording.step(first)} to {wording.step(last)}"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(wording.line(text), WIDTH, initial_indent="   ", subsequent_indent="   ")


def _partings(partings: Sequence[Parting]) -> Iterable[str]:
    if not partings:
        return ["", "No signal is logged by both runs on the same steps."]
    head = ("signal", "shared", "first differ", "apart from", "A then", "B then", "A at end", "B at end")
    rows = [
        (
            wording.line(p.signal, 30),
            f"{p.shared_points:,}",
            "never" if p.first_difference is None else wording.step(p.first_difference),
            "never" if p.apart_from is None else wording.step(p.apart_from),
            *("" if value is None else wording.number(value) for value in (p.a, p.b, p.a_end, p.b_end)),
        )
        for p in partings
    ]
    return ["", *_table(head, rows)]


def _settings(settings: Sequence[Difference], same: int) -> Iterable[str]:
    training = [d for d in settings if not d.bookkeeping]
    other = len(settings) - len(training)
    title = f"Settings: {wording.count(len(training), 'difference')}, {same:,} equal" + (f", {other:,} names and paths differ too" if other else "")
    rows = [(wording.line(d.key, 60), _value(d.a), _value(d.b)) for d in training[:FIRST_SETTINGS]]
    more = [f"  and {len(training) - FIRST_SETTINGS:,} more, in the JSON"] if len(training) > FIRST_SETTINGS else []
    return ["", title, *(_table(("setting", "A", "B"), rows) if rows else []), *more]


def _value(value: object) -> str:
    if value is None:
        return "not logged"
    text = wording.number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
    return wording.line(text, LONGEST_VALUE)


def _steps(steps: Sequence[SameStep], p: float | None) -> Iterable[str]:
    if not steps:
        return []
    rows = ["", "Step by step"]
    for found in steps[:FIRST_STEPS]:
        who = " and ".join(f"{side}'s {event}" for side, event in (("A", found.a_event), ("B", found.b_event)) if event)
        rows += textwrap.wrap(f"step {wording.step(found.step)}, {who}: {found.reading}", WIDTH, initial_indent="  - ", subsequent_indent="    ")
        if found.points_to:
            rows.append(f"    points to {', '.join(found.points_to)}")
        if found.speaks_against:
            rows.append(f"    speaks against {', '.join(found.speaks_against)}")
    if len(steps) > FIRST_STEPS:
        rows.append(f"  and {len(steps) - FIRST_STEPS:,} more, in the JSON")
    if p is not None:
        rows.append(f"  chance of events at the same steps if the runs had nothing in common: {chance(p)}")
    return rows


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    for row in (head, *rows):
        cells = [cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths, strict=True))]
        yield ("  " + "  ".join(cells)).rstrip()
