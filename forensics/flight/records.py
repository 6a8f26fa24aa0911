"""The file of records: append-only, every record with its own checksum, readable after any crash.

A file is MAGIC and records. A record is a mark, its kind, the length of its payload, the CRC-32 of kind and payload, and
the payload. Whoever finds a damaged record looks for the next mark whose checksum holds.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

MAGIC = b"FLIGHT1\n"
SUFFIX = ".flight"
FOLDER = "flight"
"""Folder of the recorder's files in a run directory."""

MARK = b"\xf1\x1a"
HEAD = struct.Struct("<2sBxII")
"""Mark, kind, bytes of the payload, checksum."""
STEP = struct.Struct("<qdQQIHBxI")
"""Step, UTC epoch seconds, digest of the batch, digest of the RNG (0: none), which values are there, their number, form of the ids, bytes of ids."""

MAX_VALUES = 32
"""Values of one step: bits of the mask."""
MAX_IDS = 4096
"""Sample ids kept of one step; the digest of the batch tells it apart all the same."""
MAX_PAYLOAD = 1 << 20
"""No record is larger; a length beyond it is damage."""


class Kind(IntEnum):
    """What a record holds."""

    SESSION = 1
    """JSON: rank, world, pid, time. The first record of every process that wrote into the file."""
    NAMES = 2
    """JSON: names of the values in the step records that follow."""
    STEP = 3
    NOTE = 4
    """JSON: something that happened: batches kept, a signal, an exception, the end."""


class Ids(IntEnum):
    """How sample ids are written."""

    NONE = 0
    UINT32 = 1
    INT64 = 2
    TEXT = 3
    """A JSON list."""


@dataclass(slots=True)
class StepRecord:
    """What is known of one step. Digests are 0 where there was nothing to digest; a value that is not there has no key."""

    step: int
    time: float
    batch_digest: int = 0
    rng_digest: int = 0
    values: Mapping[str, float] = field(default_factory=dict)
    sample_ids: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """A record as it lies in the file: ``number`` counts from 1."""

    number: int
    kind: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are no record."""

    offset: int
    size: int
    at_end: bool


def frame(kind: Kind, payload: bytes) -> bytes:
    """A record, ready to be appended."""
    return HEAD.pack(MARK, kind, len(payload), zlib.crc32(payload, kind)) + payload


def encode_json(kind: Kind, content: object) -> bytes:
    """A record of a kind whose payload is JSON."""
    return frame(kind, json.dumps(content, separators=(",", ":"), default=str).encode()[:MAX_PAYLOAD])


def encode_step(record: StepRecord, names: Sequence[str]) -> bytes:
    """A step record; ``names`` are those of the last NAMES record and hold every name of the values."""
    mask, numbers = 0, []
    for place, name in enumerate(names):
        if name in record.values:
            mask |= 1 << place
            numbers.append(record.values[name])
    form, ids = _encode_ids(record.sample_ids[:MAX_IDS])
    head = STEP.pack(record.step, record.time, record.batch_digest, record.rng_digest, mask, len(numbers), form, len(ids))
    return frame(Kind.STEP, head + struct.pack(f"<{len(numbers)}d", *numbers) + ids)


def _encode_ids(ids: Sequence[int | str]) -> tuple[Ids, bytes]:
    if not ids:
        return Ids.NONE, b""
    try:
        low, high = min(ids), max(ids)
        if low >= 0 and high < 2**32:  # type: ignore[operator]
            return Ids.UINT32, struct.pack(f"<{len(ids)}I", *ids)
        return Ids.INT64, struct.pack(f"<{len(ids)}q", *ids)
    except (TypeError, struct.error):
        return Ids.TEXT, json.dumps([i if isinstance(i, int) else str(i)[:200] for i in ids], separators=(",", ":")).encode()


def decode_step(payload: bytes, names: Sequence[str]) -> StepRecord:
    """Inverse of ``encode_step``. Raises ValueError where the payload does not fit."""
    try:
        step, time, batch, rng, mask, count, form, size = STEP.unpack_from(payload)
        numbers = struct.unpack_from(f"<{count}d", payload, STEP.size)
        start = STEP.size + 8 * count
        ids = _decode_ids(form, payload[start : start + size])
    except (struct.error, RecursionError) as problem:
        raise ValueError(str(problem)) from problem
    present = [name for place, name in enumerate(names) if mask >> place & 1]
    return StepRecord(step, time, batch, rng, dict(zip(present, numbers, strict=False)), ids)


def _decode_ids(form: int, data: bytes) -> tuple[int | str, ...]:
    if form in {Ids.UINT32, Ids.INT64}:
        letter, width = ("I", 4) if form == Ids.UINT32 else ("q", 8)
        return struct.unpack(f"<{len(data) // width}{letter}", data[: len(data) // width * width])
    if form == Ids.TEXT:
        found = json.loads(data)
        return tuple(i if isinstance(i, int) else str(i) for i in found) if isinstance(found, list) else ()
    return ()


def decode(data: bytes) -> Iterator[Frame | Gap]:
    """Records of a file in the order written; bytes that are no record come out as gaps. The magic is skipped."""
    position = len(MAGIC) if data.startswith(MAGIC) else 0
    number, end = 0, len(data)
    while position < end:
        found = _frame_at(data, position)
        if found is not None:
            number += 1
            position += HEAD.size + len(found[1])
            yield Frame(number, *found)
            continue
        start = position
        position = data.find(MARK, position + 1)
        while position >= 0 and _frame_at(data, position) is None:
            position = data.find(MARK, position + 1)
        if position < 0:
            position = end
        yield Gap(start, position - start, at_end=position == end)


def _frame_at(data: bytes, position: int) -> tuple[int, bytes] | None:
    if position + HEAD.size > len(data):
        return None
    mark, kind, size, checksum = HEAD.unpack_from(data, position)
    start = position + HEAD.size
    if mark != MARK or size > MAX_PAYLOAD or start + size > len(data):
        return None
    payload = data[start : start + size]
    return (kind, payload) if zlib.crc32(payload, kind) == checksum else None


def digest_of_ids(ids: Sequence[int | str]) -> int:
    """The digest of a batch of which only the sample ids are known."""
    return int.from_bytes(hashlib.blake2b(repr(list(ids)).encode(), digest_size=8).digest(), "little") or 1


def signed(digest: int) -> int:
    """A digest as an int64 that a float64 holds exactly: its 53 low bits."""
    return digest & ((1 << 53) - 1)


def digest_text(digest: int) -> str:
    """A digest as people read it."""
    return f"{digest:016x}"
