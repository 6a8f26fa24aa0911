"""The framing of ``.wandb`` files: from bytes to whole records, keeping every record that damage has not touched.

The file is a LevelDB log: a 7-byte header, then 32 KiB blocks counted from the start of the file. A block is a chain of
chunks ``<u32 crc><u16 length><u8 type>payload``; a record is one FULL chunk or FIRST, MIDDLE..., LAST. Chunks never cross
a block border, so all blocks of a batch are walked at once (``_walk_clean``). A block in which anything is wrong is walked
again chunk by chunk (``_walk_damaged``): there a bad chunk costs itself, and what follows it is found again.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import RawIOBase

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers.wandb_crc import after_chunk, register_of

ByteArray = NDArray[np.uint8]

FILE_HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 1 << 15
CHUNK_HEADER = 7
GAP, FULL, FIRST, MIDDLE, LAST = range(5)
"""Chunk types of the format; GAP stands for a stretch without readable chunks in the same table."""

BATCH = 1 << 25
"""Bytes read at a time, a whole number of blocks: enough to fill the vector operations, little enough to hold."""

PAD = 1 << 10
"""Bytes around a batch that may be looked at (never used) when words are read at its border."""

MAX_RECORD = 1 << 27
"""A longer record is an attack or a framing error: no metric row comes near it."""

SCAN_BUDGET = 1 << 28
"""Bytes of a file that may be checksummed while searching for the next good chunk: keeps hostile files cheap."""

CUT_OFF = "the file ends inside a record"
MISMATCH = "checksum mismatch"
ZEROS = "zero bytes where records should be"

_HEADER = struct.Struct("<IHB")


@dataclass(frozen=True, slots=True)
class Gap:
    """At least ``records`` lost records (``size`` bytes); ``before`` readable records of the batch precede them."""

    before: int
    records: int
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole records in file order: record ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``, shapes (records,).

    ``data`` has PAD spare bytes around every record, and is overwritten by the next batch. ``size``: bytes of the file.
    """

    data: ByteArray
    starts: IntArray
    lengths: IntArray
    gaps: tuple[Gap, ...]
    size: int


@dataclass(frozen=True, slots=True)
class _Hole:
    """A stretch without readable chunks.

    ``continues``: its first chunk goes on with a record that began before; ``later``: records that began after that chunk.
    """

    why: str
    continues: bool = False
    later: int = 0


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Chunks and gaps in file order, shapes (chunks,): first payload byte, payload length, type. Holes by first byte."""

    at: IntArray
    length: IntArray
    kind: IntArray
    holes: dict[int, _Hole]


@dataclass(slots=True)
class _State:
    """What crosses a batch border: the unfinished record, whether its missing rest is already counted, scan budget."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    open: bool = False
    excused: bool = False
    budget: int = field(default_factory=lambda: SCAN_BUDGET)

    def drop(self) -> None:
        """Forget the unfinished record."""
        self.pieces, self.size, self.open = [], 0, False


def read_batches(file: RawIOBase) -> Iterator[Batch]:
    """All records of an open file, batch by batch. What the 7-byte file header says is not checked here."""
    state = _State()
    buffer = np.zeros(PAD + BATCH + (BATCH >> 4) + PAD, np.uint8)
    skip = len(FILE_HEADER)
    while size := _fill(file, buffer):
        yield _batch(buffer, size, min(skip, size), state)
        skip = 0
    if state.open:
        none = np.empty(0, np.int64)
        yield Batch(buffer, none, none, (Gap(0, 1, state.size, CUT_OFF),), 0)


def read_head(head: bytes) -> Batch:
    """The records in the first bytes of a file. One that goes on past them comes last, as far as it is there."""
    state = _State(budget=0)
    buffer = np.frombuffer(bytes(PAD) + head + bytes(PAD), np.uint8)
    batch = _batch(buffer, len(head), min(len(FILE_HEADER), len(head)), state)
    if not state.open:
        return batch
    data = np.concatenate([batch.data, np.frombuffer(b"".join(state.pieces) + bytes(PAD), np.uint8)])
    starts = np.append(batch.starts, len(batch.data))
    return Batch(data, starts, np.append(batch.lengths, state.size), batch.gaps, batch.size)


def words(data: ByteArray, size: int) -> NDArray[np.void]:
    """A view whose item ``i`` is the ``size`` bytes from ``i`` on: index it with positions, view the result as numbers."""
    return np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))


def _fill(file: RawIOBase, buffer: ByteArray) -> int:
    """Read BATCH bytes to where a batch begins, fewer only at the end of the file."""
    size = 0
    while size < BATCH and (got := file.readinto(buffer.data[PAD + size : PAD + BATCH])):
        size += got
    return size


def _batch(buffer: ByteArray, size: int, skip: int, state: _State) -> Batch:
    begins = np.arange(PAD, PAD + size, BLOCK, dtype=np.int64)
    ends = np.minimum(begins + BLOCK, PAD + size)
    begins[:1] += skip
    chunks, clean = _walk_clean(buffer, begins, ends)
    if not clean.all():
        chunks = _add_damaged(chunks, buffer, begins[~clean], ends[~clean], state)
    return _assemble(buffer, size, chunks, state)


def _walk_clean(buffer: ByteArray, begins: IntArray, ends: IntArray) -> tuple[_Chunks, BoolArray]:
    """The chunks of the clean blocks, and which blocks are clean, shape (blocks,). Takes one chunk of every block a turn."""
    eight = words(buffer, 8)
    at = begins.copy()
    clean = np.ones(len(begins), np.bool_)
    register = np.zeros(len(begins), np.uint32)
    live = np.arange(len(begins))
    turns: list[tuple[IntArray, IntArray, NDArray[np.uint64]]] = []
    while len(live := live[ends[live] - at[live] >= CHUNK_HEADER]):
        header = eight[at[live]].view("<u8")
        after = at[live] + CHUNK_HEADER + _length(header)
        kind = _kind(header)
        fits = (after <= ends[live]) & (kind >= FULL) & (kind <= LAST)
        if not fits.all():
            clean[live[~fits]] = False
            live, header, after = live[fits], header[fits], after[fits]
        turns.append((live, at[live], header))
        register[live] = after_chunk(register[live], header, after - at[live] - 6)
        at[live] = after
    if len(ends) and at[-1] < ends[-1] and (ends[-1] - PAD) % BLOCK:
        clean[-1] = False  # the file ends inside a chunk header
    if not turns:
        return _Chunks(*(np.empty(0, np.int64),) * 3, {}), clean
    block, start, header = (np.concatenate(column) for column in zip(*turns, strict=True))
    order = np.argsort(start, kind="stable")
    block, start, header = block[order], start[order], header[order]
    clean &= register == [register_of(buffer.data[a:b]) for a, b in zip(begins.tolist(), at.tolist(), strict=True)]
    if not clean.all():
        kept = clean[block]
        start, header = start[kept], header[kept]
    return _Chunks(start + CHUNK_HEADER, _length(header), _kind(header), {}), clean


def _length(header: NDArray[np.uint64]) -> IntArray:
    return ((header >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.int64)


def _kind(header: NDArray[np.uint64]) -> IntArray:
    return ((header >> np.uint64(48)) & np.uint64(0xFF)).astype(np.int64)


def _add_damaged(chunks: _Chunks, buffer: ByteArray, begins: IntArray, ends: IntArray, state: _State) -> _Chunks:
    """Put what can be read of the damaged blocks between the chunks of the clean ones."""
    rows: list[tuple[int, int, int]] = []
    holes: dict[int, _Hole] = {}
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        for first, size, type_, hole in _walk_damaged(buffer.data, begin, end, state):
            rows.append((first, size, type_))
            if hole:
                holes[first] = hole
    found = np.array(rows, np.int64).reshape(-1, 3)
    at = np.concatenate([chunks.at, found[:, 0]])
    # A hole and the chunk before it never start at the same byte, but an empty chunk ends where the next thing begins.
    order = np.argsort(at, kind="stable")
    length = np.concatenate([chunks.length, found[:, 1]])
    kind = np.concatenate([chunks.kind, found[:, 2]])
    return _Chunks(at[order], length[order], kind[order], holes)


def _walk_damaged(view: memoryview, begin: int, end: int, state: _State) -> Iterator[tuple[int, int, int, _Hole | None]]:
    """Chunks and holes of one block as (first byte, length, type, hole)."""
    at = begin
    while end - at >= CHUNK_HEADER:
        _, length, kind = _HEADER.unpack_from(view, at)
        if _good(view, at, end):
            yield at + CHUNK_HEADER, length, kind, None
            at += CHUNK_HEADER + length
            continue
        if not any(view[at:end]):
            hole, resume = _Hole(ZEROS), end
        else:
            resume, later = _resume(view, at, end, state)
            partial = (end - PAD) % BLOCK != 0
            cut = partial and resume == end and at + CHUNK_HEADER + length > end and FULL <= kind <= LAST
            hole = _Hole(CUT_OFF if cut else MISMATCH, kind in {MIDDLE, LAST}, later)
        yield at, resume - at, GAP, hole
        at = resume
    if at < end and (end - PAD) % BLOCK and any(view[at:end]):
        yield at, end - at, GAP, _Hole(CUT_OFF)


def _good(view: memoryview, at: int, end: int) -> bool:
    """Whether there is a chunk at ``at`` whose checksum holds."""
    crc, length, kind = _HEADER.unpack_from(view, at)
    stop = at + CHUNK_HEADER + length
    return bool(FULL <= kind <= LAST and stop <= end and zlib.crc32(view[at + 6 : stop]) == crc)


def _resume(view: memoryview, at: int, end: int, state: _State) -> tuple[int, int]:
    """Where reading goes on after the bad chunk at ``at``, and how many records began after it and before that.

    A damaged payload leaves the chain of lengths whole: follow it to a good chunk or to the end of the block. Where that
    fails the length itself is damaged: look for a good chunk at every byte. Else the next block.
    """
    position, later = at, 0
    while state.budget > 0:
        position += CHUNK_HEADER + view[position + 4] + 256 * view[position + 5]
        if position > end:
            break
        if end - position < CHUNK_HEADER:
            return end, later
        state.budget -= CHUNK_HEADER + view[position + 4] + 256 * view[position + 5]
        if _good(view, position, end):
            return position, later
        later += view[position + 6] not in {MIDDLE, LAST}
    for position in _candidates(view, at + 1, end):
        state.budget -= CHUNK_HEADER + view[position + 4] + 256 * view[position + 5]
        if state.budget <= 0:
            break
        if _good(view, position, end):
            return position, 0
    return end, 0


def _candidates(view: memoryview, begin: int, end: int) -> list[int]:
    """Where a chunk header could stand whose chunk fits between ``begin`` and ``end``."""
    data = np.frombuffer(view[begin:end], np.uint8)
    kind = data[CHUNK_HEADER - 1 :]
    room = np.arange(len(kind), 0, -1) - 1
    size = data[4 : len(kind) + 4] + 256 * data[5 : len(kind) + 5].astype(np.int64)
    return [begin + i for i in np.flatnonzero((kind >= FULL) & (kind <= LAST) & (size <= room)).tolist()]


def _assemble(buffer: ByteArray, size: int, chunks: _Chunks, state: _State) -> Batch:
    """Join the pieces of split records, behind the batch in the buffer, and name what is missing."""
    whole = chunks.kind == FULL
    starts, lengths = chunks.at.copy(), chunks.length.copy()
    joiner = _Joiner(buffer.data, state)
    joined: list[bytes] = []
    side = PAD + size + PAD
    done = 0
    for i in np.flatnonzero(~whole).tolist():
        if i != done:
            joiner.interrupt(done)
        done = i + 1
        at, length, kind = int(starts[i]), int(lengths[i]), int(chunks.kind[i])
        if kind == GAP:
            joiner.hole(i, length, chunks.holes[at])
        elif kind == FIRST:
            joiner.first(i, at, length)
        elif record := joiner.next(i, at, length, last=kind == LAST):
            starts[i], lengths[i], whole[i] = side, len(record), True
            joined.append(record)
            side += len(record)
    if done < len(whole):
        joiner.interrupt(done)
    before = np.concatenate([[0], np.cumsum(whole)])
    gaps = tuple(Gap(int(before[gap.before]), gap.records, gap.size, gap.why) for gap in joiner.gaps)
    return Batch(_with_side(buffer, PAD + size + PAD, joined), starts[whole], lengths[whole], gaps, size)


@dataclass(slots=True)
class _Joiner:
    """Joins FIRST, MIDDLE and LAST chunks. ``gaps`` count ``before`` in chunks of the batch."""

    view: memoryview
    state: _State
    gaps: list[Gap] = field(default_factory=list)

    def interrupt(self, i: int) -> None:
        """Something that is not the rest of the open record comes at chunk ``i``."""
        if self.state.open:
            self.gaps.append(Gap(i, 1, self.state.size, "a record without its end"))
        self.state.drop()
        self.state.excused = False

    def hole(self, i: int, size: int, hole: _Hole) -> None:
        """The rest of the open record is lost, with what began in the hole; pieces after it are no second loss."""
        state = self.state
        begun = state.open or not (hole.continues and state.excused)
        records = int(state.open) if hole.why == ZEROS else hole.later + begun
        self.gaps.append(Gap(i, records, size + state.size, hole.why))
        state.drop()
        state.excused = True

    def first(self, i: int, at: int, length: int) -> None:
        """A FIRST chunk."""
        self.interrupt(i)
        self.state.open = True
        self.state.pieces.append(bytes(self.view[at : at + length]))
        self.state.size = length

    def next(self, i: int, at: int, length: int, *, last: bool) -> bytes | None:
        """A MIDDLE or LAST chunk: the whole record once it is there."""
        state = self.state
        if not state.open:
            if not state.excused:
                self.gaps.append(Gap(i, 1, length, "a record without its beginning"))
            state.excused = True
            return None
        state.pieces.append(bytes(self.view[at : at + length]))
        state.size += length
        if state.size > MAX_RECORD:
            self.gaps.append(Gap(i, 1, state.size, f"a record larger than {MAX_RECORD} bytes"))
            state.drop()
            state.excused = True
        if not last or not state.open:
            return None
        record = b"".join(state.pieces)
        state.drop()
        return record


def _with_side(buffer: ByteArray, at: int, joined: list[bytes]) -> ByteArray:
    """The buffer with the joined records from ``at`` on; a copy where they do not fit."""
    if not joined:
        return buffer
    side = np.frombuffer(b"".join(joined) + bytes(PAD), np.uint8)
    if at + len(side) > len(buffer) or not buffer.flags.writeable:
        return np.concatenate([buffer[:at], side])
    buffer[at : at + len(side)] = side
    return buffer
