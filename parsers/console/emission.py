"""From the records of a log to signals: steps, order, processes, torn lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray, IntArray, NumArray
from forensics.parsers.console.lines import LINE_LIMIT
from forensics.parsers.console.notices import Notice
from forensics.parsers.console.shapes import Format, Group, Reader
from forensics.parsers.sink import Sink

SKIPPED = "notice/skipped"
SCALE = "notice/loss scale"
"""Signals made of messages about the loss scale, which stand between the records."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of one group over the whole text: offsets, line numbers, steps int64 (rows,); times or None; columns."""

    group: Group
    offsets: IntArray
    lines: IntArray
    steps: IntArray
    times: FloatArray | None
    columns: tuple[NumArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The steps in the order of the file: offsets, steps and line numbers, all int64 (records,)."""

    offsets: IntArray
    steps: IntArray
    lines: IntArray

    def at(self, offsets: IntArray) -> IntArray:
        """The step to which something between two records belongs: that of the record before.

        Before the first record, and where the next record goes back, it is the step before the next one.
        """
        before = np.searchsorted(self.offsets, offsets, side="left") - 1
        known = self.steps[np.maximum(before, 0)]
        following = self.steps[np.minimum(before + 1, len(self.steps) - 1)]
        anew = (before < 0) | ((following < known) & (before + 1 < len(self.steps)))
        return np.where(anew, np.maximum(following - self.cadence, 0), known)

    @property
    def cadence(self) -> int:
        """Usual distance of two records in steps."""
        gaps = np.diff(self.steps)
        gaps = gaps[gaps > 0]
        return int(np.median(gaps)) if len(gaps) else 1


def emit(readers: Sequence[Reader], notices: Sequence[Notice], sink: Sink) -> int:
    """Write everything; returns the number of records."""
    tables = [_table(group, reader.format) for reader in readers for group in reader.groups.values() if len(group)]
    if not tables:
        return 0
    axis = _axis(tables)
    tables = [t if t.group.axes else _on(t, axis) for t in tables]
    ranks = _ranks(tables)
    names: dict[str, list[tuple[_Rows, NumArray]]] = {}
    for table in tables:
        for name, values in zip(table.group.names, table.columns, strict=True):
            if name.startswith("@"):
                sink.note(name[1:], values[-1].item())
            else:
                rank = ranks.get(table.group.rank)
                names.setdefault(f"{name}_rank{rank}" if rank is not None else name, []).append((table, values))
    unmeasured = frozenset().union(*(reader.format.unmeasured for reader in readers))
    for name, parts in names.items():
        _write(name, parts, sink, measured=name not in unmeasured)
    for reader in readers:
        _cut(reader, sink)
    _scales(notices, axis, sink)
    return sum(len(t.offsets) for t in tables)


def _table(group: Group, form: Format) -> _Rows:
    columns = tuple(_joined([block[i] for block in group.values]) for i in range(group.axes + len(group.names)))
    offsets = np.concatenate(group.offsets)
    axis = [_whole(c) for c in columns[: group.axes]]
    steps = form.step(axis).astype(np.int64) if axis else np.zeros(len(offsets), dtype=np.int64)
    times = np.concatenate(group.times)
    return _Rows(group, offsets, np.concatenate(group.lines), steps, None if np.isnan(times).all() else times, columns[group.axes :])


def _joined(parts: Sequence[NumArray]) -> NumArray:
    if len(parts) == 1:
        return parts[0]
    if all(p.dtype == np.int64 for p in parts):
        return np.concatenate(parts).astype(np.int64)
    return np.concatenate([p.astype(np.float64) for p in parts])


def _whole(column: NumArray) -> IntArray:
    if column.dtype == np.int64:
        return column.astype(np.int64)
    with np.errstate(invalid="ignore"):
        return np.clip(np.nan_to_num(column.astype(np.float64)), -(2.0**62), 2.0**62).astype(np.int64)


def _axis(tables: Sequence[_Rows]) -> Axis:
    stepped = [t for t in tables if t.group.axes]
    if len(stepped) == 1:
        return Axis(stepped[0].offsets, stepped[0].steps, stepped[0].lines)
    ordered = stepped or tables
    offsets = np.concatenate([t.offsets for t in ordered])
    order = np.argsort(offsets, kind="stable")
    steps = np.concatenate([t.steps for t in ordered])[order]
    if not stepped:  # nothing has a step: the order is the axis
        steps = np.arange(1, len(offsets) + 1, dtype=np.int64)
    return Axis(offsets[order], steps, np.concatenate([t.lines for t in ordered])[order])


def _on(table: _Rows, axis: Axis) -> _Rows:
    place = np.searchsorted(axis.offsets, table.offsets)
    own = (place < len(axis.offsets)) & (axis.offsets[np.minimum(place, len(axis.offsets) - 1)] == table.offsets)
    steps = np.where(own, axis.steps[np.minimum(place, len(axis.steps) - 1)], axis.at(table.offsets))
    return _Rows(table.group, table.offsets, table.lines, steps, table.times, table.columns)


def _ranks(tables: Sequence[_Rows]) -> dict[int | None, int]:
    """The processes whose signals carry their number: all but the first, where several wrote the same names."""
    writers: dict[str, set[int]] = {}
    for table in tables:
        if table.group.rank is not None:
            for name in table.group.names:
                writers.setdefault(name, set()).add(table.group.rank)
    several = set().union(*(ranks for ranks in writers.values() if len(ranks) > 1)) if writers else set()
    return {rank: rank for rank in several if rank != min(several)}


def _write(name: str, parts: Sequence[tuple[_Rows, NumArray]], sink: Sink, *, measured: bool) -> None:
    rows, values = parts[0] if len(parts) == 1 else _in_order(parts)
    if not measured:  # nan stands for "nothing measured yet"
        keep = ~np.isnan(values)
        rows = _Rows(rows.group, rows.offsets[keep], rows.lines[keep], rows.steps[keep], None if rows.times is None else rows.times[keep], ())
        values = values[keep]
    sink.points(name, rows.steps, values, wall_times=rows.times, records=rows.lines)


def _in_order(parts: Sequence[tuple[_Rows, NumArray]]) -> tuple[_Rows, NumArray]:
    """The rows of several groups in the order of the file."""
    offsets = np.concatenate([rows.offsets for rows, _ in parts])
    order = np.argsort(offsets, kind="stable")
    times = None
    if any(r.times is not None for r, _ in parts):
        times = np.concatenate([np.full(len(r.offsets), np.nan) if r.times is None else r.times for r, _ in parts])[order]
    lines = np.concatenate([r.lines for r, _ in parts])[order]
    steps = np.concatenate([r.steps for r, _ in parts])[order]
    return _Rows(parts[0][0].group, offsets[order], lines, steps, times, ()), _joined([v for _, v in parts])[order]


def _cut(reader: Reader, sink: Sink) -> None:
    if reader.format.fixed:
        _torn(reader, sink)
        if reader.unread:
            sink.damage(f"{reader.unread} lines begin like a record and hold no number", f"what they held of {reader.unread} records")
    if reader.cut:
        sink.damage("the log ends in the middle of a number", f"the last value of {reader.cut}")
    if reader.overlong:
        sink.damage(f"{reader.overlong} records are longer than {LINE_LIMIT} bytes", "what stands in them after that")


def _torn(reader: Reader, sink: Sink) -> None:
    """Lines that hold only the first few names of the usual line: other output was written into them, or the log ends there."""
    groups = sorted(reader.groups.values(), key=len, reverse=True)
    short: Counter[tuple[str, ...]] = Counter()
    lines: list[int] = []
    for group in groups:
        whole = next((g for g in groups if group.is_beginning_of(g)), None)
        if whole is not None:
            short[whole.names[len(group.names) :]] += len(group)
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
        sink.points(
            SKIPPED,
            np.concatenate([axis.steps, steps[~inside]]),
            np.concatenate([counts, skipped[~inside]]),
            records=np.concatenate([axis.lines, lines[~inside]]),
        )


def _of_one_process(notices: Sequence[Notice]) -> list[Notice]:
    ranks = {n.rank for n in notices if n.rank is not None}
    first = min(ranks) if ranks else None
    kept: list[Notice] = []
    for notice in notices:
        if notice.rank in {first, None} and not (kept and notice.repeats(kept[-1])):
            kept.append(notice)
    return kept
