"""TFRecord framing: every checksum is checked, damage is stepped over, and memory stays bounded.

A record is ``<u64 length> <u32 masked crc of the length> <payload> <u32 masked crc of the payload>``, little-endian.
Nothing marks the start of a record but the checksum of its length, which is what the search after damage looks for.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers.tensorboard_crc import Words, crc32c, masked, masked_rows, raw_rows, zeros_crc

Rows: TypeAlias = NDArray[np.uint8]

WINDOW = 8 << 20
"""Bytes read at once: some 130,000 scalar records, so that fixed costs vanish and memory stays small."""

MAX_RECORD = 64 << 20
"""Bytes of the largest record that is read. Scalars take 50; only images, meshes and graphs come near."""

HEADER = 12
"""Bytes of a length and its checksum."""

FRAME = 16
"""Bytes a record takes besides its payload."""

MIN_GROUP = 8
"""From this many records of equal length on, one matrix is cheaper than single records."""

MATRIX_BYTES = 4096
"""Payloads up to this length are checked as rows of a matrix, longer ones by themselves."""

CHECK_BUDGET = 4
"""Times the window that may be spent on checksums of doubtful records: overlapping claims cannot cost more."""

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


class GapKind(StrEnum):
    """Why a stretch of bytes is not a record."""

    LENGTH = "length"
    PAYLOAD = "payload"
    OVERSIZE = "oversize"
    TAIL = "tail"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes ``offset : offset + size`` of the stream hold no sound record; they count as record ``record``.

    ``recovered`` says that only the length was damaged and the payload could be read.
    """

    record: int
    offset: int
    size: int
    kind: GapKind
    recovered: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Sound records of one length. ``rows`` (n, padding + length + 4), payload at ``padding : padding + length``."""

    records: IntArray
    rows: Rows
    padding: int
    length: int


@dataclass(slots=True)
class Batch:
    """The records of one window. ``bad`` are records whose payload fails its checksum."""

    groups: list[Group] = field(default_factory=list)
    singles: list[tuple[int, bytes]] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


@dataclass(slots=True)
class _Frames:
    """Records found in a buffer: their numbers, payload starts and lengths, in order."""

    numbers: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)


def read_records(read: Callable[[int], bytes], window: int = WINDOW) -> Iterator[Batch]:
    """Walk a stream to its end. ``read(n)`` gives up to n bytes, b"" at the end. Never raises on any bytes."""
    framer = _Framer(window)
    want = window
    while not framer.ended:
        data = read(want)
        framer.ended = not data
        framer.buffer = framer.buffer + data if framer.buffer else data
        batch = Batch()
        frames = framer.sure()
        if framer.doubtful:
            numbers, starts, lengths = frames
            found = framer.careful(batch)
            frames = (
                np.concatenate([numbers, np.array(found.numbers, np.int64)]),
                np.concatenate([starts, np.array(found.starts, np.int64)]),
                np.concatenate([lengths, np.array(found.lengths, np.int64)]),
            )
        _collect(framer.buffer, *frames, batch)
        want = max(window, framer.need)
        framer.advance()
        yield batch


def header_length(head: bytes, position: int = 0) -> int | None:
    """The payload length at ``position`` where the checksum of the length holds, else None."""
    if len(head) < position + HEADER:
        return None
    if masked(crc32c(head[position : position + 8])) != _CRC.unpack_from(head, position + 8)[0]:
        return None
    return int(_LENGTH.unpack_from(head, position)[0])


def find_headers(buffer: bytes, first: int = 0) -> IntArray:
    """Ascending positions >= ``first`` where a length below 4 GiB stands with its checksum."""
    count = len(buffer) - HEADER + 1 - first
    if count <= 0:
        return np.empty(0, np.int64)
    data = np.frombuffer(buffer, np.uint8)[first:]
    zero = data == 0
    likely = zero[4 : 4 + count] & zero[5 : 5 + count] & zero[6 : 6 + count] & zero[7 : 7 + count]
    # A run of zeros is not a header: the checksum of length zero is not zero.
    likely &= ~(zero[8 : 8 + count] & zero[9 : 9 + count] & zero[10 : 10 + count] & zero[11 : 11 + count])
    at: IntArray = np.flatnonzero(likely) + first
    sound: IntArray = at[_length_crc(_u32(buffer, at)) == _u32(buffer, at + 8)]
    return sound


class _Framer:
    """Splits a buffer that slides over the stream into records and gaps."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.buffer = b""
        self.base = 0  # offset of the buffer in the stream
        self.position = 0  # of the next record in the buffer
        self.number = 1  # of the next record
        self.need = 0
        self.budget = 0  # bytes of doubtful payloads that may still be checked
        self.ended = False
        self.doubtful = False
        self.open_gap: tuple[int, GapKind] | None = None  # stream offset where a gap began that left the buffer

    def advance(self) -> None:
        """Forget what was read."""
        self.base += self.position
        self.buffer = self.buffer[self.position :]
        self.position = 0

    def sure(self) -> tuple[IntArray, IntArray, IntArray]:
        """Numbers, starts and lengths of the records from here on that are followed by another sound header."""
        self.need = 0
        self.doubtful = self.open_gap is not None
        offsets = np.array(_chain(self.buffer, self.position) if not self.doubtful else [], np.int64)
        whole = offsets[offsets <= len(self.buffer) - HEADER]
        lengths = _u64(self.buffer, whole)
        good = _length_crc(lengths.astype(np.uint32)) == _u32(self.buffer, whole + 8)
        good &= lengths <= np.uint64(MAX_RECORD)
        sound = len(whole) if good.all() else int(np.argmin(good))
        count = max(sound - 1, 0)
        if self.ended and sound == len(whole) > 0 and int(whole[-1]) + FRAME + int(lengths[-1]) == len(self.buffer):
            count = sound
        numbers = np.arange(self.number, self.number + count, dtype=np.int64)
        starts, sizes = whole[:count] + HEADER, lengths[:count].astype(np.int64)
        if count:
            self.position = int(starts[-1] + sizes[-1]) + 4
            self.number += count
        rest = len(self.buffer) - self.position
        self.doubtful = self.doubtful or sound < len(whole) or (self.ended and rest > 0)
        if not self.doubtful and count < len(whole):
            self.need = FRAME + int(lengths[count]) + HEADER - rest
        return numbers, starts, sizes

    def careful(self, batch: Batch) -> _Frames:
        """Record by record from here on, stepping over what is damaged."""
        end = len(self.buffer)
        headers = find_headers(self.buffer, self.position).tolist()
        known = set(headers)
        self.budget = CHECK_BUDGET * max(self.window, end)
        found = _Frames()
        while self.position < end and (self.ended or self.position + HEADER <= end):
            position = self.position
            if self.open_gap is not None and position in known:
                self._close_gap(position, GapKind.LENGTH, batch)
            verdict = self._judge(known)
            if verdict is None:
                break
            if not isinstance(verdict, GapKind):
                found.numbers.append(self.number)
                found.starts.append(position + HEADER)
                found.lengths.append(verdict - position - FRAME)
                self.number += 1
                self.position = verdict
                continue
            following = bisect_right(headers, position)
            if following < len(headers):
                self._close_gap(headers[following], GapKind.PAYLOAD if verdict is GapKind.TAIL else verdict, batch)
            elif self.ended:
                self._close_gap(end, verdict, batch)
            else:
                self._hold_gap(verdict)
                break
        return found

    def _judge(self, known: set[int]) -> int | GapKind | None:
        """Where the record at the current position ends, or why it is none, or None where more bytes are needed."""
        buffer, end, position = self.buffer, len(self.buffer), self.position
        if position not in known:
            return GapKind.TAIL if end - position < HEADER else GapKind.LENGTH
        length = int(_LENGTH.unpack_from(buffer, position)[0])
        stop = position + FRAME + length
        if length > MAX_RECORD:
            return GapKind.OVERSIZE
        if not self.ended and stop + HEADER > end:
            self.need = stop + HEADER - end
            return None
        if stop > end:
            return GapKind.TAIL
        if stop in known or (self.ended and stop == end):
            return stop
        self.budget -= length
        return stop if self.budget > 0 and _payload_sound(buffer, position + HEADER, stop - 4) else GapKind.PAYLOAD

    def _close_gap(self, stop: int, kind: GapKind, batch: Batch) -> None:
        start = self.position
        offset = self.base + start
        recovered = False
        if self.open_gap is not None:
            offset, kind = self.open_gap
            self.open_gap = None
        elif stop - start >= FRAME and _payload_sound(self.buffer, start + HEADER, stop - 4):
            recovered = True
            batch.singles.append((self.number, self.buffer[start + HEADER : stop - 4]))
        elif not self.buffer[start:stop].strip(b"\0"):
            kind = GapKind.ZEROS
        batch.gaps.append(Gap(self.number, offset, self.base + stop - offset, kind, recovered))
        self.number += 1
        self.position = stop

    def _hold_gap(self, kind: GapKind) -> None:
        """Nothing sound up to the end of the buffer: keep it while it is short, else only remember where it began."""
        if self.open_gap is None and len(self.buffer) - self.position <= self.window:
            return
        if self.open_gap is None:
            self.open_gap = (self.base + self.position, kind)
        self.position = max(self.position, len(self.buffer) - HEADER + 1)


def _chain(buffer: bytes, position: int) -> list[int]:
    """Offsets reached by following the lengths, unchecked, until they leave the buffer."""
    offsets: list[int] = []
    append, unpack = offsets.append, _LENGTH.unpack_from
    try:
        while True:
            (length,) = unpack(buffer, position)
            append(position)
            position += FRAME + length
    except (struct.error, OverflowError, IndexError):
        return offsets


def _payload_sound(buffer: bytes, start: int, stop: int) -> bool:
    return masked(crc32c(memoryview(buffer)[start:stop])) == int(_CRC.unpack_from(buffer, stop)[0])


def _collect(buffer: bytes, numbers: IntArray, starts: IntArray, lengths: IntArray, batch: Batch) -> None:
    """Check the payloads and sort them into groups of equal length and single records."""
    if not len(starts):
        return
    short = np.minimum(lengths, MATRIX_BYTES + 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    cuts = np.flatnonzero(np.diff(short[order])) + 1
    rest: list[IntArray] = []
    for members in np.split(order, cuts):
        length = int(lengths[members[0]])
        if len(members) < MIN_GROUP or length > MATRIX_BYTES or length == 0:
            rest.append(members)
            continue
        group = _group(buffer, numbers[members], starts[members], length, batch)
        if len(group.records):
            batch.groups.append(group)
    if rest:
        single = np.sort(np.concatenate(rest))
        sound = _check_singles(buffer, starts[single], lengths[single])
        batch.bad.extend(numbers[single[~sound]].tolist())
        for index in single[sound].tolist():
            batch.singles.append((int(numbers[index]), buffer[starts[index] : starts[index] + lengths[index]]))
    batch.bad.sort()


def _group(buffer: bytes, numbers: IntArray, starts: IntArray, length: int, batch: Batch) -> Group:
    padding = -length % 4
    rows = _gather(buffer, starts - padding, padding + length + 4)
    rows[:, :padding] = 0
    words = rows.view("<u4")
    sound = masked_rows(raw_rows(words[:, :-1]) ^ np.uint32(zeros_crc(length))) == words[:, -1]
    if not sound.all():
        batch.bad.extend(numbers[~sound].tolist())
        numbers, rows = numbers[sound], rows[sound]
    return Group(numbers, rows, padding, length)


def _check_singles(buffer: bytes, starts: IntArray, lengths: IntArray) -> BoolArray:
    """Checksums of records of many lengths: a matrix for each quarter of an octave, aligned at the ends."""
    sound = np.zeros(len(starts), np.bool_)
    alone = (lengths > MATRIX_BYTES) | (lengths < 4)
    bucket = np.floor(4 * np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for key in np.unique(bucket[~alone]).tolist():
        members = np.flatnonzero((bucket == key) & ~alone)
        width = 4 * -(-int(lengths[members].max()) // 4)
        begin = starts[members] + lengths[members] - width
        if len(members) < MIN_GROUP or int(begin.min()) < 0:
            alone[members] = True
            continue
        rows = _gather(buffer, begin, width + 4)
        rows[:, :width][np.arange(width) < (width - lengths[members])[:, None]] = 0
        words = rows.view("<u4")
        zeros = np.array([zeros_crc(n) for n in lengths[members].tolist()], np.uint32)
        sound[members] = masked_rows(raw_rows(words[:, :-1]) ^ zeros) == words[:, -1]
    for index in np.flatnonzero(alone).tolist():
        sound[index] = _payload_sound(buffer, int(starts[index]), int(starts[index] + lengths[index]))
    return sound


def _gather(buffer: bytes, begin: IntArray, size: int) -> Rows:
    """The ``size`` bytes from each position, (n, size). One opaque item per row is copied at once."""
    items = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, 0, (1,))
    return items[begin].view(np.uint8).reshape(len(begin), size)


def _u32(buffer: bytes, at: IntArray) -> Words:
    return _gather(buffer, at, 4).view("<u4").reshape(-1) if len(at) else np.empty(0, np.uint32)


def _u64(buffer: bytes, at: IntArray) -> NDArray[np.uint64]:
    return _gather(buffer, at, 8).view("<u8").reshape(-1) if len(at) else np.empty(0, np.uint64)


def _length_crc(lengths: Words) -> Words:
    """Stored checksums of lengths below 4 GiB."""
    table = _short_length_crc()
    if not len(lengths) or int(lengths.max()) < len(table):
        return table[lengths]
    words = np.zeros((len(lengths), 2), np.uint32)
    words[:, 0] = lengths
    return masked_rows(raw_rows(words) ^ np.uint32(zeros_crc(8)))


@cache
def _short_length_crc() -> Words:
    words = np.zeros((1 << 14, 2), np.uint32)
    words[:, 0] = np.arange(1 << 14)
    return masked_rows(raw_rows(words) ^ np.uint32(zeros_crc(8)))
