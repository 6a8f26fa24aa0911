"""From the records of a log to signals: steps, order, processes, torn lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from forensics.model import BoolArray, IntArray, NumArray
from forensics.parsers.console.notices import Notice
from forensics.parsers.console.rows import Axis, Rows
from forensics.parsers.console.shapes import RECORD_LIMIT, Format, Group, Reader
from forensics.parsers.sink import Sink

SKIPPED = "notice/skipped"
SCALE = "notice/loss scale"
"""Signals made of messages about the loss scale, which stand between the records."""


def emit(readers: Sequence[Reader], notices: Sequence[Notice], sink: Sink) -> None:
    """Write everything that was read."""
    main: list[Rows] = []
    axis: Axis | None = None
    for reader in readers:
        tables = [_rows(group, reader.format) for group in reader.groups.values() if len(group)]
        if not tables:
            continue
        own = reader.format.order(tables) if reader.format.order is not None else _axis(tables)
        axis = axis or own
        note = own.note or reader.format.axis_note
        if note:
            sink.note("step_axis", note)
        main += _placed(tables, own, reader.format)
    if axis is None:
        return
    anew = int(((np.diff(axis.steps) < 0) & (axis.steps[1:] <= axis.steps[0] + axis.cadence)).sum())
    if anew:
        sink.note("begins_anew", anew)  # restarts from nothing, or whole runs one after the other: the attempts tell
    _write_all(main, readers, sink)
    for reader in readers:
        _say_losses(reader, sink)
    _scales(notices, axis, sink)


def _rows(group: Group, form: Format) -> Rows:
    columns = tuple(_joined([block[i] for block in group.values]) for i in range(group.kind.axes + len(group.kind.names)))
    offsets = np.concatenate(group.offsets)
    axis = tuple(_whole(c) for c in columns[: group.kind.axes])
    steps = form.step(axis).astype(np.int64) if axis else np.zeros(len(offsets), dtype=np.int64)
    times = np.concatenate(group.times)
    lines = np.concatenate(group.lines)
    return Rows(group.kind, group.rank, offsets, lines, steps, None if np.isnan(times).all() else times, axis, columns[group.kind.axes :])


def _joined(parts: Sequence[NumArray]) -> NumArray:
    if len(parts) == 1:
        return parts[0]
    if all(p.dtype == np.int64 for p in parts):
        return np.concatenate(parts).astype(np.int64)
    return np.concatenate([p.astype(np.float64) for p in parts])


def _whole(column: NumArray) -> IntArray:
    if column.dtype == np.int64:
        return column.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        return np.clip(np.nan_to_num(column.astype(np.float64)), -(2.0**62), 2.0**62).astype(np.int64)


def _axis(tables: Sequence[Rows]) -> Axis:
    """The records that carry a step, in the order of the file; where none does, the order is the step."""
    ordered = [t for t in tables if t.kind.axes] or tables
    if len(ordered) == 1 and ordered[0].kind.axes:
        return Axis(ordered[0].offsets, ordered[0].steps, ordered[0].lines)
    offsets = np.concatenate([t.offsets for t in ordered])
    order = np.argsort(offsets, kind="stable")
    steps = np.concatenate([t.steps for t in ordered])[order] if ordered[0].kind.axes else np.arange(1, len(offsets) + 1, dtype=np.int64)
    return Axis(offsets[order], steps, np.concatenate([t.lines for t in ordered])[order])


def _placed(tables: Sequence[Rows], axis: Axis, form: Format) -> list[Rows]:
    """The tables with steps in all rows. Lines before the first step are left out where only a head gives them a meaning."""
    out: list[Rows] = []
    for table in tables:
        if table.kind.axes and form.order is None:
            out.append(table)
            continue
        if form.headed:
            table = _select(table, table.offsets >= axis.offsets[0])  # noqa: PLW2901 - the same table, less what means nothing
        if table.kind.names and len(table.offsets):
            out.append(replace(table, steps=axis.at(table.offsets)))
    return out


def _select(rows: Rows, keep: BoolArray) -> Rows:
    return rows if keep.all() else replace(
        rows,
        offsets=rows.offsets[keep],
        lines=rows.lines[keep],
        steps=rows.steps[keep],
        times=None if rows.times is None else rows.times[keep],
        axis=tuple(a[keep] for a in rows.axis),
        columns=tuple(c[keep] for c in rows.columns),
    )


def _write_all(tables: Sequence[Rows], readers: Sequence[Reader], sink: Sink) -> None:
    ranks = _ranks(tables)
    names: dict[str, list[tuple[Rows, NumArray]]] = {}
    for table in tables:
        rank = ranks.get(table.rank)
        for name, values in zip(table.kind.names, table.columns, strict=True):
            if name.startswith("@"):
                sink.note(name[1:], values[-1].item())
            else:
                names.setdefault(f"{name}_rank{rank}" if rank is not None else name, []).append((table, values))
    unmeasured = frozenset().union(*(reader.format.unmeasured for reader in readers))
    shown = next((r.format.shown for r in readers if r.format.shown is not None), None)
    repeated = 0
    for name, parts in names.items():
        rows, values = parts[0] if len(parts) == 1 else _in_order(parts)
        again = _again(rows.steps, values, shown=shown is not None and shown.search(name) is not None)
        repeated += int(again.sum())
        if name in unmeasured:
            again |= ~(values >= 0)
        _write(name, rows, values, ~again, sink)
    if repeated:
        sink.note("repeated_points", repeated)


def _ranks(tables: Sequence[Rows]) -> dict[int | None, int]:
    """The processes whose signals carry their number: all but the first, where several wrote the same names."""
    writers: dict[str, set[int]] = {}
    for table in tables:
        if table.rank is not None:
            for name in table.kind.names:
                writers.setdefault(name, set()).add(table.rank)
    several = set().union(*(ranks for ranks in writers.values() if len(ranks) > 1)) if writers else set()
    return {rank: rank for rank in several if rank != min(several)}


def _in_order(parts: Sequence[tuple[Rows, NumArray]]) -> tuple[Rows, NumArray]:
    """The rows of several kinds in the order of the file."""
    offsets = np.concatenate([rows.offsets for rows, _ in parts])
    order = np.argsort(offsets, kind="stable")
    times = None
    if any(r.times is not None for r, _ in parts):
        times = np.concatenate([np.full(len(r.offsets), np.nan) if r.times is None else r.times for r, _ in parts])[order]
    lines = np.concatenate([r.lines for r, _ in parts])[order]
    steps = np.concatenate([r.steps for r, _ in parts])[order]
    return Rows(parts[0][0].kind, None, offsets[order], lines, steps, times, (), ()), _joined([v for _, v in parts])[order]


def _again(steps: IntArray, values: NumArray, *, shown: bool) -> BoolArray:
    """The points that only repeat the one before: the same step printed by another process or drawn again, bool (points,).

    A progress bar goes on showing (``shown``) the last validation loss; there a value that stays is no new point.
    """
    again = np.zeros(len(values), dtype=bool)
    same = values[1:] == values[:-1]
    if values.dtype != np.int64:
        same |= np.isnan(values[1:]) & np.isnan(values[:-1])
    again[1:] = same if shown else same & (steps[1:] == steps[:-1])
    return again


def _write(name: str, rows: Rows, values: NumArray, keep: BoolArray, sink: Sink) -> None:
    if keep.all():
        sink.points(name, rows.steps, values, wall_times=rows.times, records=rows.lines)
    else:
        times = None if rows.times is None else rows.times[keep]
        sink.points(name, rows.steps[keep], values[keep], wall_times=times, records=rows.lines[keep])


def _say_losses(reader: Reader, sink: Sink) -> None:
    if reader.format.fixed:
        _say_torn(reader, sink)
        if reader.unread:
            sink.damage(f"{reader.unread} lines begin like a record and hold no number", f"what {reader.unread} records held")
    if reader.cut:
        sink.damage("the log ends in the middle of a number", f"the last value of {reader.cut}")
    if reader.overlong:
        sink.damage(f"{reader.overlong} records are longer than {RECORD_LIMIT} bytes", "what stands in them after that")


def _say_torn(reader: Reader, sink: Sink) -> None:
    """Lines that hold only the first few names of the usual line: other output was written into them, or the log ends there."""
    groups = sorted((g for g in reader.groups.values() if len(g)), key=len, reverse=True)
    short: Counter[tuple[str, ...]] = Counter()
    lines: list[int] = []
    for group in groups:
        whole = next((g for g in groups if group.is_beginning_of(g)), None)
        if whole is not None:
            short[whole.kind.names[len(group.kind.names) :]] += len(group)
            lines.append(int(group.lines[0][0]))
    if short:
        lost = sum(len(names) * count for names, count in short.items())
        some = list(dict.fromkeys(name.lstrip("@") for names in short for name in names))
        what = f"{sum(short.values())} lines are cut or broken by other output (first in line {min(lines)})"
        sink.damage(what, f"{lost} values: {', '.join(some[:6])}{' and others' if len(some) > 6 else ''}")


def _scales(notices: Sequence[Notice], axis: Axis, sink: Sink) -> None:
    """Signals out of messages: the new loss scale at its step, and per record how many steps were skipped before it."""
    kept = _of_one_process(notices)
    if not kept:
        return
    new = np.append(True, np.diff(axis.steps) != 0)
    axis = Axis(axis.offsets[new], axis.steps[new], axis.lines[new])
    offsets = np.array([n.offset for n in kept], dtype=np.int64)
    place = np.searchsorted(axis.offsets, offsets)  # the record that follows
    lines = np.array([n.line for n in kept], dtype=np.int64)
    skipped = np.array([n.skipped for n in kept], dtype=np.int64)
    scaled = np.array([n.scale is not None for n in kept], dtype=bool)
    inside = place < len(axis.steps)
    after = axis.steps[-1] + np.cumsum(~inside)
    steps = np.where(inside, axis.steps[np.minimum(place, len(axis.steps) - 1)], after)
    if scaled.any():
        sink.points(SCALE, steps[scaled], [n.scale for n in kept if n.scale is not None], records=lines[scaled])
    if skipped.any():
        counts = np.bincount(place[inside], weights=skipped[inside], minlength=len(axis.steps)).astype(np.int64)
        rest = ~inside & (skipped > 0)
        sink.points(
            SKIPPED,
            np.concatenate([axis.steps, steps[rest]]),
            np.concatenate([counts, skipped[rest]]),
            records=np.concatenate([axis.lines, lines[rest]]),
        )


def _of_one_process(notices: Sequence[Notice]) -> list[Notice]:
    ranks = {n.rank for n in notices if n.rank is not None}
    first = min(ranks) if ranks else None
    kept: list[Notice] = []
    for notice in notices:
        if notice.rank in {first, None} and not (kept and notice.repeats(kept[-1])):
            kept.append(notice)
    return kept
