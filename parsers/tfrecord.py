"""TFRecord framing: every checksum is checked, damage is stepped over, and memory stays bounded.

A record is ``<u64 length> <u32 masked crc of the length> <payload> <u32 masked crc of the payload>``, little-endian.
Nothing marks the start of a record but the checksum of its length, which is what the search after damage looks for.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np

from forensics.model import IntArray
from forensics.parsers.tensorboard_chain import FRAME, follow_lengths
from forensics.parsers.tensorboard_crc import Words, crc32c, masked, masked_rows, raw_rows, zeros_crc
from forensics.parsers.tensorboard_groups import Group, collect, payload_sound, u32_at, u64_at

WINDOW = 8 << 20
"""Bytes read at once: some 130,000 scalar records, so that fixed costs vanish and memory stays small."""

MAX_RECORD = 64 << 20
"""Bytes of the largest record that is read. Scalars take 50; only images, meshes and graphs come near."""

HEADER = 12
"""Bytes of a length and its checksum."""

SEARCH_BLOCK = 1 << 20
"""Bytes searched for headers together: the intermediate arrays stay small."""

CHECK_BUDGET = 4
"""Times the window that may be spent on checksums of doubtful records: overlapping claims cannot cost more."""

MAX_GAPS = 100_000
"""Damaged places of one stream that are stepped over. Past that it is noise or an attack, and each costs time."""

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


class GapKind(StrEnum):
    """Why a stretch of bytes is not a record."""

    LENGTH = "length"
    PAYLOAD = "payload"
    OVERSIZE = "oversize"
    TAIL = "tail"
    ZEROS = "zeros"
    GIVEN_UP = "given up"


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


class _Frames(NamedTuple):
    """Records found in a buffer: their numbers, payload starts and lengths, in order."""

    numbers: IntArray
    starts: IntArray
    lengths: IntArray


def read_records(read: Callable[[int], bytes], window: int = WINDOW) -> Iterator[Batch]:
    """Walk a stream to its end. ``read(n)`` gives up to n bytes, b"" at the end. Never raises on any bytes."""
    framer = _Framer(window)
    want = window
    while not framer.ended:
        data = read(want)
        framer.ended = not data
        framer.buffer = framer.buffer + data if framer.buffer else data
        frames = framer.sure()
        checked = collect(framer.buffer, *frames)
        kept = framer.back_to_swallowed(frames, checked.bad)
        if kept < len(frames.numbers):
            checked = collect(framer.buffer, *(part[:kept] for part in frames))
        if framer.doubtful:
            checked.merge(collect(framer.buffer, *framer.careful()))
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
    parts = [_headers(buffer, start) for start in range(first, len(buffer) - HEADER + 1, SEARCH_BLOCK)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _headers(buffer: bytes, first: int) -> IntArray:
    """Headers that begin in one block."""
    count = min(SEARCH_BLOCK, len(buffer) - HEADER + 1 - first)
    zero = np.frombuffer(buffer, np.uint8, count + HEADER - 1, first) == 0
    likely = zero[4 : 4 + count] & zero[5 : 5 + count] & zero[6 : 6 + count] & zero[7 : 7 + count]
    # A run of zeros is not a header: the checksum of length zero is not zero.
    likely &= ~(zero[8 : 8 + count] & zero[9 : 9 + count] & zero[10 : 10 + count] & zero[11 : 11 + count])
    at: IntArray = np.flatnonzero(likely) + first
    sound: IntArray = at[_length_crc(u32_at(buffer, at)) == u32_at(buffer, at + 8)]
    return sound


class _Headers:
    """Positions of sound headers, compact, with membership and successor."""

    def __init__(self, positions: IntArray) -> None:
        self.positions = array("q", positions.tobytes())

    def __contains__(self, position: int) -> bool:
        at = bisect_left(self.positions, position)
        return at < len(self.positions) and self.positions[at] == position

    def after(self, position: int) -> int | None:
        """The first header behind ``position``."""
        at = bisect_right(self.positions, position)
        return self.positions[at] if at < len(self.positions) else None


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
        self.gap_count = 0
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

    def sure(self) -> _Frames:
        """The records from here on that are followed by another sound header."""
        self.need = 0
        self.doubtful = self.open_gap is not None
        offsets = follow_lengths(self.buffer, self.position) if not self.doubtful else np.empty(0, np.int64)
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
        return _Frames(numbers, starts, sizes)

    def back_to_swallowed(self, frames: _Frames, bad: list[int]) -> int:
        """Go back to the first damaged record that holds the header of another one; how many records come before it.

        Such a record was cut short, and what follows happens to line up with its end.
        """
        if not bad:
            return len(frames.numbers)
        index = np.array(bad) - int(frames.numbers[0])
        starts = frames.starts[index]
        stops = starts + frames.lengths[index] + 4
        headers = find_headers(self.buffer, int(starts[0]))
        inside = np.searchsorted(headers, stops) > np.searchsorted(headers, starts)
        if not inside.any():
            return len(frames.numbers)
        kept = int(index[np.argmax(inside)])
        self.position = int(frames.starts[kept]) - HEADER
        self.number = int(frames.numbers[kept])
        self.doubtful = True
        return kept

    def careful(self) -> _Frames:
        """Record by record from here on, stepping over what is damaged."""
        end = len(self.buffer)
        headers = _Headers(find_headers(self.buffer, self.position))
        self.budget = CHECK_BUDGET * max(self.window, end)
        found: list[tuple[int, int, int]] = []
        while self.position < end and (self.ended or self.position + HEADER <= end):
            position = self.position
            if self.open_gap is not None and position in headers:
                self._close_gap(position, GapKind.LENGTH)
            verdict = self._judge(headers)
            if verdict is None:
                break
            if not isinstance(verdict, GapKind):
                found.append((self.number, position + HEADER, verdict - position - FRAME))
                self.number += 1
                self.position = verdict
                continue
            following = headers.after(position)
            if self.gap_count >= MAX_GAPS:
                self._close_gap(end, GapKind.GIVEN_UP)
                self.ended = True
            elif following is not None:
                self._close_gap(following, GapKind.PAYLOAD if verdict is GapKind.TAIL else verdict)
            elif self.ended:
                self._close_gap(end, verdict)
            else:
                self._hold_gap(verdict)
                break
        return _Frames(*np.array(found, np.int64).reshape(-1, 3).T)

    def _judge(self, headers: _Headers) -> int | GapKind | None:
        """Where the record at the current position ends, or why it is none, or None where more bytes are needed."""
        buffer, end, position = self.buffer, len(self.buffer), self.position
        if position not in headers:
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
        inner = headers.after(position)
        if (stop in headers or (self.ended and stop == end)) and (inner is None or inner >= stop):
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
        self.gap_count += 1
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
