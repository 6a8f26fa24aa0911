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

import numpy as np

from forensics.model import IntArray
from forensics.parsers.tensorboard_crc import Words, crc32c, masked, masked_rows, raw_rows, zeros_crc
from forensics.parsers.tensorboard_groups import Group, collect, payload_sound, u32_at, u64_at

WINDOW = 8 << 20
"""Bytes read at once: some 130,000 scalar records, so that fixed costs vanish and memory stays small."""

MAX_RECORD = 64 << 20
"""Bytes of the largest record that is read. Scalars take 50; only images, meshes and graphs come near."""

HEADER = 12
"""Bytes of a length and its checksum."""

FRAME = 16
"""Bytes a record takes besides its payload."""

CHECK_BUDGET = 4
"""Times the window that may be spent on checksums of doubtful records: overlapping claims cannot cost more."""

LEARN = 64
"""Records followed one by one before a guess at their period; twice as many after each guess that fails."""

MATCH = 16
"""Record sizes that must repeat for a guess."""

HISTORY = 4096
"""Record sizes remembered: longer periods are not found."""

CANDIDATES = 8
"""Periods compared for a guess."""

FIRST_GUESS = 1024
"""Records of a first guess; each that holds is followed by one four times as long."""

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
class Batch:
    """The records of one window. ``bad`` are records whose payload fails its checksum."""

    groups: list[Group]
    singles: list[tuple[int, bytes]]
    bad: list[int]
    gaps: list[Gap]


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
        numbers, starts, lengths = framer.sure()
        if framer.doubtful:
            found = framer.careful()
            numbers = np.concatenate([numbers, np.array(found.numbers, np.int64)])
            starts = np.concatenate([starts, np.array(found.starts, np.int64)])
            lengths = np.concatenate([lengths, np.array(found.lengths, np.int64)])
        checked = collect(framer.buffer, numbers, starts, lengths)
        gaps, mended = framer.take()
        yield Batch(checked.groups, checked.singles + mended, checked.bad, gaps)
        want = max(window, framer.need)


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
    sound: IntArray = at[_length_crc(u32_at(buffer, at)) == u32_at(buffer, at + 8)]
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
        self.gaps: list[Gap] = []
        self.mended: list[tuple[int, bytes]] = []
        self.open_gap: tuple[int, GapKind] | None = None  # stream offset where a gap began that left the buffer

    def take(self) -> tuple[list[Gap], list[tuple[int, bytes]]]:
        """Gaps and mended records since the last call; what was read leaves the buffer."""
        self.base += self.position
        self.buffer = self.buffer[self.position :]
        self.position = 0
        taken = self.gaps, self.mended
        self.gaps, self.mended = [], []
        return taken

    def sure(self) -> tuple[IntArray, IntArray, IntArray]:
        """Numbers, starts and lengths of the records from here on that are followed by another sound header."""
        self.need = 0
        self.doubtful = self.open_gap is not None
        offsets = _chain(self.buffer, self.position) if not self.doubtful else np.empty(0, np.int64)
        whole = offsets[offsets <= len(self.buffer) - HEADER]
        lengths = u64_at(self.buffer, whole)
        good = _length_crc(lengths.astype(np.uint32)) == u32_at(self.buffer, whole + 8)
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

    def careful(self) -> _Frames:
        """Record by record from here on, stepping over what is damaged."""
        end = len(self.buffer)
        headers = find_headers(self.buffer, self.position).tolist()
        known = set(headers)
        self.budget = CHECK_BUDGET * max(self.window, end)
        found = _Frames()
        while self.position < end and (self.ended or self.position + HEADER <= end):
            position = self.position
            if self.open_gap is not None and position in known:
                self._close_gap(position, GapKind.LENGTH)
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
                self._close_gap(headers[following], GapKind.PAYLOAD if verdict is GapKind.TAIL else verdict)
            elif self.ended:
                self._close_gap(end, verdict)
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
        return stop if self.budget > 0 and payload_sound(buffer, position + HEADER, stop - 4) else GapKind.PAYLOAD

    def _close_gap(self, stop: int, kind: GapKind) -> None:
        start = self.position
        offset = self.base + start
        recovered = False
        if self.open_gap is not None:
            if self.buffer[start:stop].strip(b"\0"):
                self._not_zeros()
            offset, kind = self.open_gap
            self.open_gap = None
        elif stop - start >= FRAME and payload_sound(self.buffer, start + HEADER, stop - 4):
            recovered = True
            self.mended.append((self.number, self.buffer[start + HEADER : stop - 4]))
        elif not self.buffer[start:stop].strip(b"\0"):
            kind = GapKind.ZEROS
        self.gaps.append(Gap(self.number, offset, self.base + stop - offset, kind, recovered))
        self.number += 1
        self.position = stop

    def _hold_gap(self, kind: GapKind) -> None:
        """Nothing sound up to the end of the buffer: keep it while it is short, else only remember where it began."""
        if self.open_gap is None and len(self.buffer) - self.position <= self.window:
            return
        keep = max(self.position, len(self.buffer) - HEADER + 1)
        zeros = not self.buffer[self.position : keep].strip(b"\0")
        if self.open_gap is None:
            self.open_gap = (self.base + self.position, GapKind.ZEROS if zeros else kind)
        elif not zeros:
            self._not_zeros()
        self.position = keep

    def _not_zeros(self) -> None:
        if self.open_gap is not None and self.open_gap[1] is GapKind.ZEROS:
            self.open_gap = (self.open_gap[0], GapKind.LENGTH)


def _chain(buffer: bytes, position: int) -> IntArray:
    """Offsets reached by following the lengths, unchecked, until they leave the buffer.

    Training loops log the same tags step after step, so the lengths repeat. A period seen in the last lengths is laid out
    ahead and compared with what the buffer holds; where it breaks, the lengths are followed one by one again.
    """
    parts: list[IntArray] = []
    seen = np.empty(0, np.int64)
    learn = LEARN
    while True:
        offsets = _follow(buffer, position, learn)
        parts.append(np.array(offsets, np.int64))
        if len(offsets) < learn:
            return np.concatenate(parts)
        position = offsets.pop()  # its length is not known to stay in the buffer
        parts[-1] = parts[-1][:-1]
        seen = np.concatenate([seen, np.diff(np.append(parts[-1], position))])[-HISTORY:]
        period = _period(seen)
        guessed, ahead = 0, FIRST_GUESS
        while period:
            part = _guess(buffer, position, seen[-period:], ahead)
            guessed, position = len(part) - 1, int(part[-1])
            parts.append(part[:-1])
            seen = np.concatenate([seen, np.diff(part[-HISTORY - 1 :])])[-HISTORY:]
            if guessed < ahead:
                break
            ahead *= 4
        learn = LEARN if guessed > learn else 2 * learn  # lengths without a period cost no more than following them


def _follow(buffer: bytes, position: int, limit: int) -> list[int]:
    """At most ``limit`` offsets, one after the other."""
    offsets: list[int] = []
    append, unpack = offsets.append, _LENGTH.unpack_from
    try:
        for _ in range(limit):
            (length,) = unpack(buffer, position)
            append(position)
            position += FRAME + length
    except (struct.error, OverflowError, IndexError):
        pass
    return offsets


def _guess(buffer: bytes, position: int, sizes: IntArray, ahead: int) -> IntArray:
    """Offsets from ``position`` on, as far as records repeat these sizes: at most ``ahead`` + 1 of them, the last one open."""
    sizes = np.tile(sizes, -(-ahead // len(sizes)))[:ahead]
    offsets = np.empty(ahead + 1, np.int64)
    offsets[0] = position
    np.cumsum(sizes, out=offsets[1:])
    offsets[1:] += position
    inside = int(np.searchsorted(offsets[:-1], len(buffer) - 8, side="right"))
    right = u64_at(buffer, offsets[:inside]) == (sizes[:inside] - FRAME).astype(np.uint64)
    count = inside if right.all() else int(np.argmin(right))
    return offsets[: count + 1]


def _period(seen: IntArray) -> int:
    """The distance at which the last sizes repeat for longest, 0 where they do not."""
    at = np.arange(len(seen) - MATCH)[::-1] + MATCH - 1  # ends of earlier stretches, latest first
    for back in range(1, MATCH + 1):
        at = at[seen[at - back + 1] == seen[-back]]
    best, best_run, compared = 0, 0, 0
    for period in (len(seen) - 1 - at).tolist():
        if period <= best_run:  # a multiple of a shorter period that already explains as much
            continue
        same = (seen[period:] == seen[:-period])[::-1]
        run = len(same) if same.all() else int(np.argmin(same))
        if run > best_run:
            best, best_run = period, run
        compared += 1
        if compared == CANDIDATES:
            break
    return best


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
