"""The engine of the console parsers: lines of one shape are read by one learned pattern.

A format finds its records with a ``gate`` and takes one apart with ``read``. From the first line of a shape a pattern is
made in which only the numbers vary; every later line of that shape costs one match. What the lines hold is gathered by
record kind, brought back into the order of the file, and written as signals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from forensics.model import FloatArray, IntArray, NumArray
from forensics.parsers.console.lines import NUMBER, Block, numbers
from forensics.parsers.console.rows import Axis, Kind, Rows

MAX_SHAPES = 256
"""Patterns kept; more shapes than this are no regular log, and each line is taken apart by hand."""
RECENT = 6
"""Patterns tried before a line is taken apart: logs alternate between a few kinds of record."""
MAX_GROUPS = 2_000
"""Different sets of names; a text with more is no log of a training loop."""
RECORD_LIMIT = 1 << 16
"""Bytes of a record that are looked at: two thousand numbers with their names."""
MAX_FIELDS = 2_000
"""Numbers in one line; what follows is not read."""

SIMPLE = rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
"""The usual number. Patterns use it where the first line has such a one: half the time of the full form."""

_CLOSING = b" \t\n|,;)]}>'\""
"""What may close a whole line."""
_AMBIGUOUS = (b",", b"")
"""Between two numbers these would let one pattern match a line in very many ways, and take for ever to see that it does not."""
_SIMPLE = re.compile(SIMPLE)
PREFIX_REACH = 400
"""Bytes before a record that a launcher or logger may put on its line."""
TIME_REACH = 60
"""Bytes of a line in which a logger writes the time."""
NEWLINE, BLANK = 10, 32

_VARYING = re.compile(rb"(^[ \t]+|[ \t]+$|[ \t]{2,})|(\d+)|([^\s\d]+|\s)")
_LABEL = re.compile(rb"(?:rank|default|RANK|Rank|local_rank|R)\s?[:=]?\s?(\d{1,6})\]?|^\s*\[?(\d{1,6})[\]:]+\s")
_TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Field:
    """A number in a line. A name that begins with ``@`` is a fact for the notes; an empty one is passed over."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line taken apart. ``axis`` are the whole numbers its step is made of; () where it belongs to the record before."""

    axis: tuple[Span, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """A log format. ``marks``: literals of which a text must hold one. ``gate`` begins at the record and ends with the line.

    ``step`` makes steps from the axis numbers, each int64 (rows,). ``fixed`` says that a line with only the first few of the
    usual fields is torn. ``settings`` finds (name, value) pairs of the configuration. With ``whole_line`` the record is the
    line around the gate, less a time at its beginning. Where records are ``headed``, lines without a step mean nothing
    before the first line with one. ``order`` makes the steps where it takes more than one line to know them. ``unmeasured``
    are names that are nan or negative while nothing is measured, ``shown`` names that a progress bar shows until they change.
    ``axis_note`` says in words what the steps are where they are no optimizer steps.
    """

    title: str
    marks: tuple[bytes, ...]
    gate: re.Pattern[bytes]
    read: Callable[[bytes], Line | None]
    step: Callable[[Sequence[IntArray]], IntArray] = lambda axis: axis[0]
    fixed: bool = False
    settings: re.Pattern[bytes] | None = None
    whole_line: bool = False
    headed: bool = False
    order: Callable[[Sequence[Rows]], Axis] | None = None
    shown: re.Pattern[str] | None = None
    unmeasured: frozenset[str] = frozenset()
    axis_note: str = ""


@dataclass(slots=True, eq=False)
class Group:
    """All lines of one kind from one process. Rows of finished blocks are arrays, those of the present block lists."""

    kind: Kind
    rank: int | None
    offsets: list[IntArray] = field(default_factory=list)
    lines: list[IntArray] = field(default_factory=list)
    steps: list[IntArray] = field(default_factory=list)
    times: list[FloatArray] = field(default_factory=list)
    values: list[list[NumArray]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    rows: list[tuple[bytes, ...]] = field(default_factory=list)
    stamps: dict[int, bytes] = field(default_factory=dict)

    sample: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.offsets)) + len(self.starts)

    def is_beginning_of(self, other: Group) -> bool:
        """Whether these are a commoner line's first few fields with something else after them."""
        names = self.kind.names
        short = self.kind.ragged and 0 < len(names) < len(other.kind.names) and len(self) < len(other)
        return short and other.kind.names[: len(names)] == names


@dataclass(slots=True, eq=False)
class _Shape:
    pattern: re.Pattern[bytes]
    group: Group
    """Where its lines without a label of a process go."""
    pick: Callable[[tuple[bytes, ...]], tuple[bytes, ...]] | None = None
    """Brings what the pattern finds into the order of the group, where the step stands behind other numbers."""
    labelled: dict[int | None, Group] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Reader:
    """Takes the records of one format out of the blocks of a text."""

    format: Format
    groups: dict[tuple[Kind, int | None], Group] = field(default_factory=dict)
    unread: int = 0
    overlong: int = 0
    cut: str = ""
    _recent: list[_Shape] = field(default_factory=list)
    _shapes: dict[bytes, _Shape] = field(default_factory=dict)
    _labels: dict[bytes, int | None] = field(default_factory=dict)

    def take(self, block: Block) -> None:
        """Read one block. O(bytes)."""
        data = block.data
        if not any(mark in data for mark in self.format.marks):
            return
        recent, whole = self._recent, self.format.whole_line
        for found in self.format.gate.finditer(data):
            start = found.start() if not whole else _line_start(data, found.start())
            before = data[start - 1] if start else NEWLINE
            plain = before == NEWLINE or (before == BLANK and (start < 2 or data[start - 2] == NEWLINE))
            for shape in recent:
                match = shape.pattern.match(data, start)
                if match is not None:
                    if shape is not recent[0]:
                        recent.remove(shape)
                        recent.insert(0, shape)
                    group, cells = shape.group, match.groups()
                    if shape.pick is not None:
                        cells = shape.pick(cells)
                    if plain:
                        group.starts.append(start)
                        group.rows.append(cells)
                    else:
                        self._add(group.kind, cells, start, data, shape.labelled)
                    break
            else:
                self._record(start, found.end(), block)
        for group in self.groups.values():
            _close(group, block)

    def _record(self, start: int, end: int, block: Block) -> None:
        """Take a line apart that has no known shape."""
        text = block.data[start : min(end, start + RECORD_LIMIT)]
        self.overlong += len(text) < end - start
        last = block.open and end == len(block.data)
        if last:
            text = self._whole(text)
        line = self.format.read(text)
        fields = tuple(f for f in line.fields[:MAX_FIELDS] if f.name) if line is not None else ()
        if line is None or not (fields or line.axis) or any(a >= b for a, b in line.axis):
            self.unread += 1
            return
        ragged = bool(fields) and (last or bool(text[fields[-1].stop :].strip(_CLOSING)))
        kind = Kind(len(line.axis), tuple(f.name for f in fields), ragged)
        cells = tuple(text[a:b] for a, b in line.axis) + tuple(text[f.start : f.stop] for f in fields)
        if self._add(kind, cells, start, block.data, {}) and not last:
            self._learn(text, line, kind)

    def _whole(self, text: bytes) -> bytes:
        """The last line of a text without a line end, less its last number where that may have lost digits."""
        line = self.format.read(text)
        last = line.fields[-1] if line is not None and line.fields else None
        if line is None or last is None or last.stop < len(text.rstrip()):
            return text
        names = tuple(f.name for f in line.fields if f.name)
        usual = max((g for g in self.groups.values() if g.kind.names[: len(names)] == names), key=len, default=None)
        if usual is None or not len(usual):
            return text
        before = (usual.rows[-1] if usual.rows else usual.sample)[usual.kind.axes + len(names) - 1]
        if usual.kind.names == names and _decimals(before) == _decimals(text[last.start : last.stop]):
            return text
        self.cut = last.name
        return text[: last.start]

    def _learn(self, text: bytes, line: Line, kind: Kind) -> None:
        source, order = _pattern(text, line) if len(line.fields) <= MAX_FIELDS else (None, ())
        shape = self._shapes.get(source) if source is not None else None
        if shape is None:
            if source is None or len(self._shapes) >= MAX_SHAPES:
                return
            pick = None if list(order) == sorted(order) else itemgetter(*order)
            shape = self._shapes[source] = _Shape(re.compile(source), self._group(kind, None), pick)
        self._recent.insert(0, shape)
        del self._recent[RECENT:]

    def _add(self, kind: Kind, cells: tuple[bytes, ...], start: int, data: bytes, known: dict[int | None, Group]) -> bool:
        """File a record under its process, which the text before it may name. ``known`` are the groups of its shape."""
        reach = max(0, start - PREFIX_REACH)
        prefix = data[max(data.rfind(b"\n", reach, start) + 1, reach) : start]
        rank, stamp = (None, b"") if not prefix or prefix.isspace() else self._origin(prefix)
        group = known.get(rank)
        if group is None:
            if len(self.groups) >= MAX_GROUPS and (kind, rank) not in self.groups:
                self.unread += 1
                return False
            group = known[rank] = self._group(kind, rank)
        if stamp:
            group.stamps[len(group.rows)] = stamp
        group.starts.append(start)
        group.rows.append(cells)
        return True

    def _group(self, kind: Kind, rank: int | None) -> Group:
        group = self.groups.get((kind, rank))
        if group is None:
            group = self.groups[kind, rank] = Group(kind, rank)
        return group

    def _origin(self, prefix: bytes) -> tuple[int | None, bytes]:
        """Rank and time from what a launcher or logger put before the record."""
        time = _TIME.search(prefix)
        label = prefix[: time.start()] if time else prefix
        if label not in self._labels:
            found = _LABEL.search(label)
            rank = int(found[1] or found[2]) if found else None
            if len(self._labels) > 10_000:
                return rank, time[0] if time else b""
            self._labels[label] = rank
        return self._labels[label], time[0] if time else b""


def _pattern(text: bytes, line: Line) -> tuple[bytes | None, tuple[int, ...]]:
    """The pattern of all lines like this one, and where in it axis and fields stand; None where numbers overlap."""
    wanted = [*line.axis, *((f.start, f.stop) for f in line.fields if f.name)]
    spans = sorted([(a, b, True) for a, b in wanted] + [(f.start, f.stop, False) for f in line.fields if not f.name])
    parts: list[bytes] = []
    at = -1
    for start, stop, caught in spans:
        if start < at or (at >= 0 and text[at:start] in _AMBIGUOUS):
            return None, ()
        kind = SIMPLE if _SIMPLE.fullmatch(text, start, stop) else NUMBER
        parts += (_loose(text[max(at, 0) : start]), b"(" + kind + b")" if caught else kind)
        at = stop
    parts.append(_loose(text[max(at, 0) :].rstrip(b" \t\n")))
    places = {span: place for place, span in enumerate(sorted(wanted))}
    return b"".join(parts) + rb"[ \t]*\n", tuple(places[span] for span in wanted)


def _loose(text: bytes) -> bytes:
    """A literal in which digits and padding may vary."""
    return b"".join(rb"[ \t]+" if blank else rb"\d+" if digits else re.escape(word) for blank, digits, word in _VARYING.findall(text))


def _line_start(data: bytes, place: int) -> int:
    start = data.rfind(b"\n", 0, place) + 1
    time = _TIME.search(data, start, min(place, start + TIME_REACH))
    return time.end() if time else start


def _decimals(token: bytes) -> int:
    return len(token.partition(b".")[2])


def _close(group: Group, block: Block) -> None:
    """Turn the rows of a block into arrays."""
    if not group.starts:
        return
    starts = np.array(group.starts, dtype=np.int64)
    columns = [numbers(list(column)) for column in zip(*group.rows, strict=True)]
    group.offsets.append(starts + block.offset)
    group.lines.append(block.numbers(starts))
    group.times.append(_seconds(group.stamps, len(starts)))
    group.values.append(columns)
    group.sample = group.rows[-1]
    group.starts, group.rows, group.stamps = [], [], {}


def _seconds(stamps: Mapping[int, bytes], rows: int) -> FloatArray:
    """Seconds since 1970 (rows,), NaN where a line has no time. Times without a zone are taken as UTC: only differences count."""
    out = np.full(rows, np.nan)
    for row, text in stamps.items():
        with suppress(ValueError):
            out[row] = np.datetime64(text.decode().replace(",", ".").replace(" ", "T"), "us").astype(np.int64) / 1e6
    return out
