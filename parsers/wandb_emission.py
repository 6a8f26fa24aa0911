"""From what was read of a ``.wandb`` file to signals, configuration, notes and damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forensics.model import FloatArray, IntArray
from forensics.parsers.interface import RunKey
from forensics.parsers.sink import Sink
from forensics.parsers.wandb_axes import LOG_CALL, Axes
from forensics.parsers.wandb_history import Column
from forensics.parsers.wandb_log import Log, Place
from forensics.parsers.wandb_wire import ConfigChange, RunFacts

_T = TypeVar("_T", np.float64, np.int64)

MAX_PLACES = 20
"""Damaged places that are named one by one; the rest is summed up."""

INTERNAL = "_wandb"
"""The client's own bookkeeping inside the configuration."""


def emit(log: Log, sink: Sink, run: RunKey) -> None:
    """Write everything to the sink. Uses up the history of the log."""
    columns = {column.name: column for column in log.history.columns()}
    steps = _log_steps(log, columns)
    axes = Axes(steps, log.metrics, columns)
    main = axes.main()
    _emit_damage(log, sink, axes.steps(main))
    _emit_facts(log, sink, run)
    sink.config(_config(log.changes))
    _emit_history(sink, axes, main)
    _emit_samples(log, sink, axes.steps(main))


def _log_steps(log: Log, columns: Mapping[str, Column]) -> IntArray:
    """The step of every row: its step field, else its item ``_step``, else its number. Shape (rows,)."""
    steps, stepped = log.history.steps()
    if not stepped.all():
        spare = np.arange(len(steps), dtype=np.int64)
        column = columns.get(LOG_CALL)
        if column is not None and column.values.dtype == np.int64:
            spare[column.rows] = column.values
        steps = np.where(stepped, steps, spare)
    return steps


def _emit_history(sink: Sink, axes: Axes, main: str) -> None:
    rows = len(axes.log_steps)
    times = np.full(rows, np.nan)
    stamps = axes.columns.get("_timestamp")
    if stamps is not None:
        times[stamps.rows] = stamps.values
    shelf = _Shelf(np.arange(1, rows + 1, dtype=np.int64), None if stamps is None else times)
    named = set()
    for column in axes.columns.values():
        name = main if column.name.startswith("_") else axes.name_for(column)
        named.add(name)
        records, wall = shelf.place(column.rows)
        steps_of = shelf.steps(column.rows, name, axes.steps(name))
        sink.points(column.name, steps_of, column.values, wall_times=wall, records=records)
    if named - {LOG_CALL}:
        sink.note("step_axis", ", ".join(sorted(named - {LOG_CALL})))


@dataclass(slots=True)
class _Shelf:
    """Steps, times and records of columns, one array for all columns that share their rows.

    A log of a million rows has many columns but few sets of rows.
    """

    records: IntArray
    times: FloatArray | None
    known: dict[int, tuple[IntArray, FloatArray | None]] = field(default_factory=dict)
    known_steps: dict[tuple[int, str], IntArray] = field(default_factory=dict)

    def place(self, rows: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Record numbers and times of rows. ``rows`` must live as long as the shelf."""
        if id(rows) not in self.known:
            self.known[id(rows)] = (_pick(self.records, rows), None if self.times is None else _pick(self.times, rows))
        return self.known[id(rows)]

    def steps(self, rows: IntArray, name: str, axis: IntArray) -> IntArray:
        """The steps of rows on the axis ``name``. ``rows`` must live as long as the shelf."""
        key = (id(rows), name)
        if key not in self.known_steps:
            self.known_steps[key] = _pick(axis, rows)
        return self.known_steps[key]


def _pick(values: NDArray[_T], rows: IntArray) -> NDArray[_T]:
    """``values[rows]``, without a copy where the rows follow each other."""
    first, last = int(rows[0]), int(rows[-1])
    return values[first : last + 1] if last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all()) else values[rows]


def _emit_samples(log: Log, sink: Sink, steps: IntArray) -> None:
    """System metrics, at the step of the last row before them; before the first row, at its step."""
    found: dict[str, tuple[list[int], list[float], list[float]]] = {}
    for sample in log.samples:
        step = int(steps[min(max(sample.rows - 1, 0), len(steps) - 1)]) if len(steps) else 0
        for item in sample.stats.items:
            if item.value is not None:
                at, values, times = found.setdefault(item.name, ([], [], []))
                at.append(step)
                values.append(item.value)
                times.append(sample.stats.time)
    for name, (at, values, times) in found.items():
        whole = all(isinstance(value, int) for value in values)
        sink.points(f"system.{name}", at, np.array(values, np.int64 if whole else np.float64), wall_times=times)


def _emit_facts(log: Log, sink: Sink, run: RunKey) -> None:
    """Notes about the run. Its host, user and command line are never read."""
    facts = log.runs[-1] if log.runs else RunFacts(run.id, run.name)
    for key, text in (("run_id", facts.id or run.id), ("run_name", facts.name or run.name), ("project", facts.project)):
        if text:
            sink.note(key, text)
    start = next((r.start_time for r in log.runs if r.start_time), None)
    if start is not None:
        sink.note("start_time", start)
    sink.note("resumed", any(r.resumed for r in log.runs))
    if log.writer:
        sink.note("writer", f"wandb {log.writer}")
    sink.note("finished", log.exit_code is not None)
    if log.exit_code is not None:
        sink.note("exit_code", log.exit_code)


def _config(changes: Iterable[ConfigChange]) -> dict[str, object]:
    """The configuration after all changes, nested by name, without the client's own part."""
    flat: dict[tuple[str, ...], object] = {}
    for change in changes:
        if change.path[0] in {INTERNAL, ""}:
            continue
        if change.remove:
            flat = {path: value for path, value in flat.items() if path[: len(change.path)] != change.path}
        else:
            flat[change.path] = change.value
    nested: dict[str, object] = {}
    for path, value in flat.items():
        nested[".".join(path)] = value
    return nested


def _emit_damage(log: Log, sink: Sink, steps: IntArray) -> None:
    for place in log.places[:MAX_PLACES]:
        sink.damage(f"{place.gap.why} {_where(place.rows, steps)}", _lost(place, steps))
    rest = log.places[MAX_PLACES:]
    if rest:
        records = sum(place.gap.records for place in rest)
        size = sum(place.gap.size for place in rest)
        sink.damage(f"{len(rest)} more damaged places, the last {_where(rest[-1].rows, steps)}", f"at least {_count(records, 'record')} ({size} bytes)")
    if log.unreadable:
        sink.damage("records with a good checksum that cannot be read", _count(log.unreadable, "record"))
    broken = sorted(set(log.history.broken))
    if broken:
        sink.damage(f"history rows that break off, the first {_where(broken[0], steps)}", f"part of {_count(len(broken), 'row')}")
    if not log.records:
        sink.damage("no readable record in the file", "the whole run")


def _where(rows: int, steps: IntArray) -> str:
    if not rows or not len(steps):
        return "before the first history row"
    return f"after history row {rows} (step {steps[min(rows, len(steps)) - 1]})"


def _lost(place: Place, steps: IntArray) -> str:
    """How much was lost in one place; how many of it were history rows is told from the steps around it."""
    text = f"at least {_count(place.gap.records, 'record')} ({place.gap.size} bytes)" if place.gap.records else f"{place.gap.size} bytes"
    row = place.rows
    if not 0 < row < len(steps) or len(steps) < 4:
        return text
    usual = float(np.median(np.diff(steps[max(0, row - 500) : row + 500])))
    missing = round((int(steps[row]) - int(steps[row - 1])) / usual) - 1 if usual > 0 else 0
    if missing <= 0:
        return text
    return f"{text}; by the steps about {_count(missing, 'history row')} between step {steps[row - 1]} and {steps[row]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
