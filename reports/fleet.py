"""Many runs in a terminal: one line a run, then what those that went wrong have in common."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TextIO

from forensics.model import to_json
from forensics.model.fleet import Fleet, FleetRun
from forensics.model.words import chance
from forensics.reports import wording

WIDTH = 100
NAME, CAUSE = 34, 26
"""Columns of a run's name and of its cause; longer names keep both ends."""

FIRST = 8
"""Rows of each list of things in common."""

_KINDS = {kind.value: words for kind, words in wording.KINDS.items()}


def head() -> str:
    """The line above the rows."""
    return f"{'run':{NAME}}  {'last step':>9}  {'alarms':>6}  {'worst':20}  {'at step':>9}  {'cause':{CAUSE}}  score\n"


def row(run: FleetRun) -> str:
    """One run: its worst alarm and that alarm's best explanation."""
    name = wording.line(run.name, NAME)[:NAME]
    if run.problem:
        return f"{name:{NAME}}  not analysed: {wording.line(run.problem, 120)}\n"
    last = wording.step(run.last_step)
    worst = min(run.events, key=lambda e: (e.severity != "critical", e.onset_step), default=None)
    if worst is None:
        calm = f"{run.calm} info" if run.calm else "nothing"
        return f"{name:{NAME}}  {last:>9}  {0:>6}  {calm}\n"
    kind = _KINDS.get(worst.kind, worst.kind)
    cause = wording.line(worst.cause or "undetermined", CAUSE)[:CAUSE]
    score = "" if worst.score is None else f"{worst.score:.2f}"
    text = f"{name:{NAME}}  {last:>9}  {len(run.events):>6}  {kind:20}  {wording.step(worst.onset_step):>9}  {cause:{CAUSE}}  {score}"
    return text.rstrip() + "\n"


def common(fleet: Fleet, out: TextIO) -> None:
    """Write what the runs have in common, after the rows."""
    rows = ["", *textwrap.wrap(wording.line(fleet.verdict), WIDTH)]
    rows += _list("Causes named first", (f"{c.cause}: {wording.count(len(c.runs), 'run')} ({_names(c.runs)})" for c in fleet.causes))
    shared = (f"batch {b.batch_id}: {_names(b.runs)}, at steps {', '.join(map(wording.step, b.steps[:6]))}{_by_chance(b.p_value)}" for b in fleet.batches)
    rows += _list("Batches at which several runs broke", shared)
    together = (f"step {wording.step(s.step)}: {_names(s.runs)}{_by_chance(s.p_value)}" for s in fleet.steps)
    rows += _list("Steps at which several runs broke", together)
    telling = (
        f"{s.key} = {s.value}: {s.bad_with} of {s.with_it} went wrong, {s.bad_without} of {s.without_it} without it{_by_chance(s.p_value)}"
        for s in fleet.settings
    )
    rows += _list("Settings that go with trouble", telling)
    rows += _list("Not checked", fleet.not_checked)
    out.write("\n".join(rows) + "\n")


def render_json(fleet: Fleet, out: TextIO) -> None:
    """Write the sweep as strict JSON, schema ``forensics-sweep/1``."""
    json.dump(to_json(fleet), out, indent=1, sort_keys=True, allow_nan=False)
    out.write("\n")


def _by_chance(p: float) -> str:
    return f"; chance of that: {chance(p)}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _list(title: str, rows: Iterable[str]) -> list[str]:
    rows = list(rows)
    if not rows:
        return []
    out = ["", title]
    for text in rows[:FIRST]:
        out += textwrap.wrap(wording.line(text), WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return out + ([f"  - and {len(rows) - FIRST} more, in the JSON"] if len(rows) > FIRST else [])
