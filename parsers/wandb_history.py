"""History rows of a ``.wandb`` file into columns, many rows at once.

A row is a list of items in random order, so there is no offset at which a key could be expected. All rows of a slice
advance together instead: one turn reads one item of every row. A key is looked up by its raw bytes in a table that is
compared word by word; values stay texts in the buffer until a whole slice is parsed. An item or a row that is not of the
usual shape is left to ``wandb_wire``, which reads anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray, NumArray
from forensics.parsers import wandb_wire as wire
from forensics.parsers.sink import MAX_SIGNALS
from forensics.parsers.wandb_framing import ByteArray, words
from forensics.parsers.wandb_keys import KeyTable
from forensics.parsers.wandb_numbers import integers, parse

SLICE = 1 << 16
"""Rows whose values are parsed and sorted together: row numbers fit 16 bits, so that sorting takes linear time."""

STEP = 1 << 12
"""Rows that advance together: their bytes stay in the cache from turn to turn."""

NARROW = 16
"""With fewer rows left in step, reading them one by one is quicker."""

MAX_DEPTH = 16
"""Levels of a nested key that are followed in step."""

_ITEM, _VALUE_JSON = 0x0A, 0x0182
"""First bytes of a HistoryItem in its row, and of the JSON text in its item."""

_TYPED = np.zeros(256, np.bool_)
_TYPED[[0x18, 0x20, 0x28, 0x31, 0x3A, 0x42]] = True
"""First bytes of the typed value that may follow the JSON text and says the same: none, boolean, integer, number, text, json."""

Word = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Column:
    """The numbers logged under one name: 0-based row numbers, ascending, and values. Shapes (points,)."""

    name: str
    rows: IntArray
    values: NumArray


@dataclass(slots=True)
class _Pieces:
    rows: list[NDArray[np.uint32]] = field(default_factory=list)
    values: list[NumArray] = field(default_factory=list)
    integer: bool = True

    def joined(self) -> tuple[IntArray, NumArray]:
        """Rows and values of all pieces, by row. int64 only if every piece is."""
        rows = np.concatenate(self.rows).astype(np.int64)
        values: NumArray
        if all(part.dtype == np.int64 for part in self.values):
            values = np.concatenate(self.values).astype(np.int64, copy=False)
        else:
            values = np.concatenate([part.astype(np.float64, copy=False) for part in self.values])
        if len(rows) > 1 and (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows, values = rows[order], values[order]
        return rows, values


@dataclass(slots=True)
class _Items:
    """Items found in one slice: row in the slice, key id, and where the text of the value is."""

    row: list[IntArray] = field(default_factory=list)
    key: list[IntArray] = field(default_factory=list)
    at: list[IntArray] = field(default_factory=list)
    length: list[IntArray] = field(default_factory=list)


@dataclass(slots=True)
class History:
    """Collects rows. ``broken`` lists the rows of which only the beginning could be read."""

    rows: int = 0
    broken: list[int] = field(default_factory=list)
    _keys: KeyTable = field(default_factory=KeyTable)
    _columns: dict[str, _Pieces] = field(default_factory=dict)
    _loose: dict[str, tuple[list[int], list[float]]] = field(default_factory=dict)
    _steps: list[IntArray] = field(default_factory=list)
    _stepped: list[BoolArray] = field(default_factory=list)

    def add(self, data: ByteArray, begins: IntArray, ends: IntArray) -> None:
        """Read HistoryRecord messages ``data[begins : ends]``, shapes (rows,)."""
        for start in range(0, len(begins), SLICE):
            self._add_slice(data, begins[start : start + SLICE], ends[start : start + SLICE])

    def steps(self) -> tuple[IntArray, BoolArray]:
        """The step field of every row and whether the row has one, shapes (rows,)."""
        if not self._steps:
            return np.empty(0, np.int64), np.empty(0, np.bool_)
        return np.concatenate(self._steps), np.concatenate(self._stepped)

    def columns(self) -> list[Column]:
        """The columns in the order their names first appeared; those with equal rows share one array of them.

        Frees what was collected: call once.
        """
        found: list[Column] = []
        shared: dict[tuple[int, int, int], IntArray] = {}
        for name in list(self._columns):
            pieces = self._columns.pop(name)
            rows, values = pieces.joined()
            key = (len(rows), int(rows[0]), int(rows[-1]))
            if key in shared and np.array_equal(shared[key], rows):
                rows = shared[key]
            shared[key] = rows
            found.append(Column(name, rows, values))
        return found

    def _add_slice(self, data: ByteArray, begins: IntArray, ends: IntArray) -> None:
        steps = np.zeros(len(begins), np.int64)
        stepped = np.zeros(len(begins), np.bool_)
        items = _Items()
        walks = [self._walk(data, np.arange(a, min(a + STEP, len(begins))), begins, ends, items) for a in range(0, len(begins), STEP)]
        left, at = (np.concatenate(part) for part in zip(*walks, strict=True))
        known = _read_steps(data, at, ends[left])
        steps[left], stepped[left] = known, known >= 0
        strange = (known < 0) & (at < ends[left])
        for row, start, stop in zip(left[strange].tolist(), at[strange].tolist(), ends[left[strange]].tolist(), strict=True):
            rest = wire.row(data[start:stop].tobytes())
            for item in rest.items:
                self._add_one(self.rows + row, item)
            if rest.step is not None:
                steps[row], stepped[row] = rest.step, True
            if not rest.whole:
                self.broken.append(self.rows + row)
        self._add_items(data, items)
        self._add_loose()
        self._steps.append(np.where(stepped, steps, 0))
        self._stepped.append(stepped)
        self.rows += len(begins)

    def _walk(self, data: ByteArray, live: IntArray, begins: IntArray, ends: IntArray, items: _Items) -> tuple[IntArray, IntArray]:
        """Take items off the rows ``live`` as long as they are of the usual shape: the rows, and where each goes on."""
        eight = words(data, 8)
        at = begins[live]
        stopped: list[tuple[IntArray, IntArray]] = []
        while len(live) >= NARROW:
            end = ends[live]
            head = eight[at].view("<u8")
            begin, size, good = _length(at + 1, head, 8)
            stop = begin + size
            good &= ((head & np.uint64(0xFF)) == _ITEM) & (stop <= end)
            if not good.all():
                stopped.append((live[~good], at[~good]))
                live, begin, stop = live[good], begin[good], stop[good]
            self._take(data, items, live, begin, stop)
            at = stop
        stopped.append((live, at))
        rows = np.concatenate([s[0] for s in stopped])
        return rows, np.concatenate([s[1] for s in stopped])

    def _take(self, data: ByteArray, items: _Items, live: IntArray, begin: IntArray, stop: IntArray) -> None:
        """One HistoryItem ``data[begin:stop]`` of every live row."""
        eight = words(data, 8)
        head = eight[begin].view("<u8")
        tag = head & np.uint64(0x80FF)
        usual = (tag == 0x12) | (tag == 0x0A)
        after = np.minimum(begin + 2 + _bits(head, 8, 0x7F), stop)
        tail = eight[after].view("<u8")
        for _ in range(MAX_DEPTH):
            deeper = usual & ((tail & np.uint64(0x80FF)) == 0x12) & (after < stop)
            if not deeper.any():
                break
            after = np.where(deeper, np.minimum(after + 2 + _bits(tail, 8, 0x7F), stop), after)
            tail = eight[after].view("<u8")
        value, length, good = _length(after + 2, tail, 16)
        usual &= good & ((tail & np.uint64(0xFFFF)) == _VALUE_JSON)
        end = value + length
        if not np.array_equal(end, stop):
            usual &= (end == stop) | ((end < stop) & _TYPED[data[np.minimum(end, stop)]])
        key, known = self._keys.find(data, begin, np.where(usual, after - begin, 0))
        usual &= known
        if not usual.all():
            odd = ~usual
            for row, a, b in zip(live[odd].tolist(), begin[odd].tolist(), stop[odd].tolist(), strict=True):
                self._add_raw(self.rows + row, data[a:b].tobytes())
            live, key, value, length = live[usual], key[usual], value[usual], length[usual]
        items.row.append(live)
        items.key.append(key)
        items.at.append(value)
        items.length.append(length)

    def _add_raw(self, row: int, message: bytes) -> None:
        try:
            self._add_one(row, wire.item(message))
        except wire.MalformedError:
            if not self.broken or self.broken[-1] != row:
                self.broken.append(row)

    def _add_one(self, row: int, item: wire.Item) -> None:
        if item.value is not None and item.name:
            rows, values = self._loose.setdefault(item.name, ([], []))
            rows.append(row)
            values.append(item.value)

    def _add_loose(self) -> None:
        """Turn what was read one by one in this slice into pieces of columns."""
        for name, (rows, values) in self._loose.items():
            pieces = self._pieces(name)
            if pieces is not None:
                pieces.integer &= all(isinstance(value, int) for value in values)
                pieces.rows.append(np.array(rows, np.uint32))
                pieces.values.append(np.array(values, np.int64) if pieces.integer else np.array(values, np.float64))
        self._loose.clear()

    def _pieces(self, name: str) -> _Pieces | None:
        """The pieces of a column, None for one name too many: the sink takes no more and says so."""
        if name not in self._columns and (len(self._columns) > MAX_SIGNALS or not name):
            return None
        return self._columns.setdefault(name, _Pieces())

    def _add_items(self, data: ByteArray, items: _Items) -> None:
        if not items.row:
            return
        row, key, at, length = (np.concatenate(part) for part in (items.row, items.key, items.at, items.length))
        numbers = parse(data, at, length)
        order = _by_key_and_row(row, key)
        if not numbers.valid.all():
            order = order[numbers.valid[order]]
        if not len(order):
            return
        row, key, length, values = row[order], key[order], length[order], numbers.values[order]
        cuts = np.flatnonzero(key[1:] != key[:-1]) + 1
        starts, stops = np.append(0, cuts), np.append(cuts, len(key))
        with np.errstate(invalid="ignore"):
            whole = np.logical_and.reduceat(np.isfinite(values) & (values == np.rint(values)), starts)
        number = (row + self.rows).astype(np.uint32)
        for a, b, integral in zip(starts.tolist(), stops.tolist(), whole.tolist(), strict=True):
            pieces = self._pieces(self._keys.names[int(key[a])])
            if pieces is None:
                continue
            pieces.rows.append(number[a:b])
            part = values[a:b]
            if pieces.integer:
                exact = integers(data, at[order[a:b]], length[a:b], part) if integral else None
                pieces.integer = exact is not None and bool(exact.valid.all())
                part = exact.values if exact is not None and pieces.integer else part
            pieces.values.append(part)


def _bits(word: Word, shift: int, mask: int) -> IntArray:
    return ((word >> np.uint64(shift)) & np.uint64(mask)).view(np.int64)


def _length(at: IntArray, word: Word, shift: int) -> tuple[IntArray, IntArray, BoolArray]:
    """A varint of one or two bytes at ``at``, which is bit ``shift`` of ``word``: first byte after it, value, is it one."""
    size = _bits(word, shift, 0x7F)
    long = (word & np.uint64(0x80 << shift)) != 0
    if not long.any():
        return at + 1, size, ~long
    size |= np.where(long, _bits(word, shift + 8, 0x7F) << 7, 0)
    return at + 1 + long, size, ~long | ((word & np.uint64(0x8000 << shift)) == 0)


def _by_key_and_row(row: IntArray, key: IntArray) -> IntArray:
    """The order that sorts items by key, then by row; shape (items,).

    Where nearly all rows have nearly all keys, each item has its own place in a table of keys and rows.
    """
    rows, keys = int(row.max(initial=0)) + 1, int(key.max(initial=0)) + 1
    if rows * keys <= 4 * len(row):
        table = np.full(rows * keys, -1, np.int32)
        table[key * rows + row] = np.arange(len(row), dtype=np.int32)
        found = table[table >= 0].astype(np.int64)
        if len(found) == len(row):
            return found
    order = np.argsort(row.astype(np.uint16), kind="stable")
    return order[np.argsort(key[order].astype(np.uint16), kind="stable")]


def _read_steps(data: ByteArray, at: IntArray, ends: IntArray) -> IntArray:
    """The step where a row ends with a plain HistoryStep message at ``at``, else -1. Shapes (rows,)."""
    word = words(data, 8)[at].view("<u8")
    size = _bits(word, 8, 0xFF)
    usual = ((word & np.uint64(0xFF)) == 0x12) & (at + 2 + size == ends) & (size != 1) & (size <= 6)
    usual &= (size == 0) | (_bits(word, 16, 0xFF) == 0x08)
    value = np.zeros(len(at), np.int64)
    for i in range(5):
        byte = _bits(word, 24 + 8 * i, 0xFF)
        inside = i + 1 < size
        value |= np.where(inside, (byte & 0x7F) << (7 * i), 0)
        usual &= ~inside | ((byte >= 0x80) == (i + 2 < size))
    return np.where(usual, value, -1)
