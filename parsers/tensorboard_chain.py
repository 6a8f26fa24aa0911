"""Where the records of a buffer begin, by their lengths alone: the one step of the framing that is sequential.

Training loops log the same tags step after step, so the lengths repeat. A period seen in the last lengths is laid out ahead
and compared with what the buffer holds; where it breaks, the lengths are followed one by one again.
"""

from __future__ import annotations

import struct

import numpy as np

from forensics.model import IntArray
from forensics.parsers.tensorboard_groups import u64_at

FRAME = 16
"""Bytes a record takes besides its payload."""

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


def follow_lengths(buffer: bytes, position: int) -> IntArray:
    """Offsets from ``position`` on that are reached by following the lengths, unchecked, until they leave the buffer."""
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
