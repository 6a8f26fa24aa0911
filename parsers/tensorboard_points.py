"""From checked records to points: groups of equal shape are read at fixed positions, whatever is odd one by one.

The first record of a group is walked; its map becomes a mask of the bytes that must be equal for another record to have
the same shape. Those that match are read as columns, the rest goes round again.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from forensics.model import FloatArray, IntArray
from forensics.parsers.tensorboard_groups import MIN_GROUP, Group, Rows
from forensics.parsers.tensorboard_tags import OVERFLOW, Tags, column
from forensics.parsers.tensorboard_wire import MEDIA, EventMap, Form, Kind, MalformedError, number, signed, varint, walk_event
from forensics.parsers.tfrecord import Batch

MAX_SHAPES = 24
"""Shapes tried in one group; what is left after that has no common shape and is read one by one."""

_STEPS, _VALUES, _WALLS, _RECORDS = range(4)
"""Columns of a chunk."""

_Column = TypeVar("_Column", IntArray, FloatArray)

SpecialEvent = Callable[[int, int, bytes, EventMap], None]
"""Told (record, step, payload, map) of every event that is more than scalars."""


class TagPoints(NamedTuple):
    """All points of one tag in the order written; every array (points,)."""

    tag: bytes
    steps: IntArray
    values: FloatArray | IntArray
    wall_times: FloatArray
    records: IntArray


@dataclass(slots=True)
class _Chunk:
    """Points of one batch sorted by tag, in the order written within a tag. ``counts`` per tag number."""

    counts: IntArray
    columns: list[FloatArray | IntArray]


class _Piece(NamedTuple):
    """Points of one value of one shape. ``place`` is the position of the value within its event."""

    records: IntArray
    place: int
    tags: IntArray
    steps: IntArray
    values: FloatArray
    wall_times: FloatArray


@dataclass(slots=True)
class Points:
    """Gathers the points of a file. Integer values travel as their bits in ``values``."""

    special: SpecialEvent
    tags: Tags = field(default_factory=Tags)
    skipped: Counter[Kind] = field(default_factory=Counter)
    malformed: list[int] = field(default_factory=list)
    overflow: int = 0
    total: int = 0
    last_step: int | None = None
    _chunks: list[_Chunk] = field(default_factory=list)
    _pieces: list[_Piece] = field(default_factory=list)
    _records: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _steps: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, batch: Batch) -> None:
        """Read every sound record of a batch."""
        singles = list(batch.singles)
        for group in batch.groups:
            self._group(group, singles)
        self._singles(sorted(singles))
        self._close_batch()

    def near(self, record: int) -> int | None:
        """The step logged last before a record of the latest batch, or the first one after it."""
        at = int(np.searchsorted(self._records, record)) - 1
        if at >= 0:
            return int(self._steps[at])
        return self.last_step if self.last_step is not None or not len(self._steps) else int(self._steps[0])

    def signals(self) -> Iterator[TagPoints]:
        """The points by tag, in the order the tags appeared. Empties the object; O(points)."""
        size = len(self.tags.names)
        counts = [np.concatenate([c.counts, np.zeros(size - len(c.counts), np.int64)]) for c in self._chunks]
        totals = np.sum(counts, axis=0, dtype=np.int64) if counts else np.zeros(size, np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(totals)])
        targets = []
        filled = offsets[:-1].copy()
        for count in counts:
            before = np.cumsum(count) - count
            targets.append(np.repeat(filled - before, count) + np.arange(int(count.sum())))
            filled += count
        size = int(offsets[-1])
        steps, values = self._gather(_STEPS, targets, np.empty(size, np.int64)), self._gather(_VALUES, targets, np.empty(size))
        walls, records = self._gather(_WALLS, targets, np.empty(size)), self._gather(_RECORDS, targets, np.empty(size, np.int64))
        bounds = offsets.tolist()
        for index, (tag, is_int) in enumerate(self.tags.names):
            part = slice(bounds[index], bounds[index + 1])
            if part.start < part.stop:
                numbers = values[part].view(np.int64) if is_int else values[part]
                yield TagPoints(tag, steps[part], numbers, walls[part], records[part])

    def _gather(self, which: int, targets: list[IntArray], out: _Column) -> _Column:
        """One column of all chunks, sorted by tag; the chunks give theirs up, so that memory never holds it twice."""
        for chunk, target in zip(self._chunks, targets, strict=True):
            out[target] = chunk.columns[which]
            chunk.columns[which] = np.empty(0)
        return out

    def _group(self, group: Group, singles: list[tuple[int, bytes]]) -> None:
        records, rows = group.records, group.rows
        stop = group.padding + group.length
        for _ in range(MAX_SHAPES):
            if len(rows) < MIN_GROUP:
                break
            payload = rows[0, group.padding : stop].tobytes()
            event = _map_or_none(payload)
            if event is None or not _readable(event, group.padding):
                singles.append((int(records[0]), payload))
                records, rows = records[1:], rows[1:]
                continue
            same = _same_shape(rows, event, group)
            if same is None:
                self._read(records, rows, event, group.padding)
                return
            self._read(records[same], rows[same], event, group.padding)
            records, rows = records[~same], rows[~same]
        singles.extend(zip(records.tolist(), (row.tobytes() for row in rows[:, group.padding : stop]), strict=True))

    def _read(self, records: IntArray, rows: Rows, event: EventMap, padding: int) -> None:
        """Read records of one shape as columns."""
        walls = np.zeros(len(rows)) if event.wall < 0 else column(rows, padding + event.wall, "<f8").astype(np.float64)
        steps = _varints(rows, padding + event.step_start, padding + event.step_stop)
        for place, scalar in enumerate(event.scalars):
            tags = self.tags.numbers(rows, padding + scalar.tag_start, padding + scalar.tag_stop, scalar.form.is_int)
            start, stop = padding + scalar.start, padding + scalar.stop
            if start == stop:
                values = np.zeros(len(rows))
            elif scalar.form is Form.VARINT:
                values = _varints(rows, start, stop).view(np.float64)
            else:
                raw = column(rows, start, scalar.form.value)
                values = raw.astype(np.int64).view(np.float64) if scalar.form.is_int else _widen(raw)
            self._pieces.append(_Piece(records, place, tags, steps, values, walls))
        for other in event.others:
            self.skipped[other.kind] += len(rows)

    def _singles(self, singles: list[tuple[int, bytes]]) -> None:
        rows: list[list[tuple[int, int, int, int, float]]] = []
        for record, payload in singles:
            event = _map_or_none(payload)
            if event is None:
                self.malformed.append(record)
                continue
            wall = struct.unpack_from("<d", payload, event.wall)[0] if event.wall >= 0 else 0.0
            step = signed(varint(payload, event.step_start, event.step_stop))
            for place, scalar in enumerate(event.scalars):
                if place == len(rows):
                    rows.append([])
                tag = self.tags.number(payload[scalar.tag_start : scalar.tag_stop], scalar.form.is_int)
                value = number(payload, scalar.form, scalar.start, scalar.stop)
                bits = value if isinstance(value, int) else struct.unpack("<q", struct.pack("<d", value))[0]
                rows[place].append((record, tag, step, bits, wall))
            if not event.plain:
                self.special(record, step, payload, event)
            for other in event.others:
                self.skipped[other.kind] += other.kind in MEDIA
        for place, points in enumerate(rows):
            records, tags, steps, bits_of = (np.array([p[k] for p in points], np.int64) for k in range(4))
            walls = np.array([p[4] for p in points], np.float64)
            self._pieces.append(_Piece(records, place, tags, steps, bits_of.view(np.float64), walls))

    def _close_batch(self) -> None:
        """Bring the points of the batch into the order written, then sort them by tag."""
        if len(self._steps):
            self.last_step = int(self._steps[-1])
        pieces, self._pieces = self._pieces, []
        if not pieces:
            self._records = self._steps = np.empty(0, np.int64)
            return
        records = np.concatenate([p.records for p in pieces])
        base = int(records.min())
        per_record = np.bincount(records - base)
        place = np.cumsum(per_record) - per_record
        target = place[records - base]
        if int(per_record.max()) > 1:
            target += np.concatenate([np.full(len(p.records), p.place) for p in pieces])
        written = np.empty(len(records), np.int64)
        written[target] = np.arange(len(records))
        tags = np.concatenate([p.tags for p in pieces])[written].astype(np.uint16)
        steps = np.concatenate([p.steps for p in pieces])
        self._records, self._steps = records[written], steps[written]
        by_tag = np.argsort(tags, kind="stable")
        counts = np.bincount(tags, minlength=len(self.tags.names))
        if len(counts) > OVERFLOW:
            self.overflow += int(counts[OVERFLOW])
            counts = counts[:OVERFLOW]
            by_tag = by_tag[: int(counts.sum())]
        order = written[by_tag]
        values = np.concatenate([p.values for p in pieces])[order]
        walls = np.concatenate([p.wall_times for p in pieces])[order]
        self.total += len(order)
        self._chunks.append(_Chunk(counts[: len(self.tags.names)], [steps[order], values, walls, records[order]]))


def _map_or_none(payload: bytes) -> EventMap | None:
    try:
        return walk_event(payload)
    except MalformedError:
        return None


def _readable(event: EventMap, padding: int) -> bool:
    """Whether a group of this shape can be read as columns: plain, and room before each tag for an 8-byte number."""
    return event.plain and all(s.tag_stop > s.tag_start and padding + s.tag_stop >= 8 for s in event.scalars)


def _same_shape(rows: Rows, event: EventMap, group: Group) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Which rows have the shape of the first one; None for all of them."""
    mask = np.full(rows.shape[1] - 4, 0xFF, np.uint8)
    at = group.padding

    def free(start: int, stop: int, keep: int = 0) -> None:
        mask[at + start : at + stop] = keep

    if event.wall >= 0:
        free(event.wall, event.wall + 8)
    free(event.step_start, event.step_stop, 0x80)  # the continuation bits fix the length
    for scalar in event.scalars:
        free(scalar.tag_start, scalar.tag_stop)
        free(scalar.start, scalar.stop, 0x80 if scalar.form is Form.VARINT else 0)
    for other in event.others:
        free(other.tag_start, other.tag_stop)
        free(other.start, other.stop)
    masks = mask.view("<u4")
    words = rows.view("<u4")
    differ = np.zeros(len(rows), np.uint32)
    for k in np.flatnonzero(masks).tolist():
        differ |= (words[:, k] ^ words[0, k]) & masks[k]
    same = differ == 0
    return None if same.all() else same


def _varints(rows: Rows, start: int, stop: int) -> IntArray:
    out = np.zeros(len(rows), np.uint64)
    for index, position in enumerate(range(start, stop)):
        out |= (rows[:, position] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * index)
    return out.view(np.int64)


def _widen(raw: np.ndarray[tuple[int], np.dtype[np.generic]]) -> FloatArray:
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return raw.astype(np.float64)
