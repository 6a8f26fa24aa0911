"""Which record is of which type, for a whole batch at once.

A record begins with its number (field 1, a varint) and goes on with the one field that is its type. Decided on the whole
record only: its first chunk may hold no byte of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forensics.model import BoolArray, IntArray
from forensics.parsers import wandb_wire as wire
from forensics.parsers.wandb_framing import Batch, words

_NUMBER_TAG = 0x08
_HISTORY_TAG = wire.HISTORY << 3 | 2
_SKIPPED = np.zeros(256, np.bool_)
_SKIPPED[[field << 3 | 2 for field in (wire.SUMMARY, 4, 6, 8, 9, 10, 11, 13)]] = True
"""First bytes of types that are not read: summary, output, files, artifact, tbrecord, alert, telemetry, output_raw."""


@dataclass(frozen=True, slots=True)
class Routes:
    """History records of a batch and where their messages lie, shapes (rows,); records to be read singly, shape (others,)."""

    history: IntArray
    begins: IntArray
    ends: IntArray
    others: IntArray
    unreadable: int


def route(batch: Batch) -> Routes:
    """Sort the records of a batch by type. ``unreadable`` counts records that are no protobuf message at all."""
    starts, stops = batch.starts, batch.starts + batch.lengths
    at, numbered = _after_number(batch, starts, stops)
    at = np.minimum(at, stops)
    tag = np.where(numbered & (at < stops), batch.data[at], 0)
    begins, ends, fits = _message(batch, at + 1, stops)
    history = (tag == _HISTORY_TAG) & fits
    others = np.flatnonzero(~history & ~(_SKIPPED[tag] & fits))
    unreadable = 0
    singly = []
    for i in others.tolist():
        record = batch.data[starts[i] : stops[i]].tobytes()
        try:
            found = [(field, at_, end) for field, form, at_, end in wire.spans(record) if form == 2]
        except wire.MalformedError:
            unreadable += 1
            continue
        if rows := [(at_, end) for field, at_, end in found if field == wire.HISTORY]:
            history[i] = True
            begins[i], ends[i] = starts[i] + rows[-1][0], starts[i] + rows[-1][1]
        elif any(field in wire.READ for field, _, _ in found):
            singly.append(i)
    chosen = np.flatnonzero(history)
    return Routes(chosen, begins[chosen], ends[chosen], np.array(singly, np.int64), unreadable)


def _after_number(batch: Batch, starts: IntArray, stops: IntArray) -> tuple[IntArray, BoolArray]:
    """The byte after the record number (or the first byte where there is none), and whether that is known."""
    head: NDArray[np.uint64] = words(batch.data, 8)[starts].view("<u8")
    numbered = (head & np.uint64(0xFF)) == _NUMBER_TAG
    at = starts + numbered
    more = numbered.copy()
    for i in range(1, 8):
        at += more
        more &= (head & np.uint64(0x80 << (8 * i))) != 0
        if not more.any():
            break
    return at, ~more & (at <= stops)


def _message(batch: Batch, at: IntArray, stops: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Begin and end of a length-delimited field whose length is at ``at``, and whether it lies within the record."""
    head: NDArray[np.uint64] = words(batch.data, 8)[np.minimum(at, stops)].view("<u8")
    size = np.zeros(len(at), np.int64)
    begin = at.copy()
    more = np.ones(len(at), np.bool_)
    for i in range(4):
        byte = ((head >> np.uint64(8 * i)) & np.uint64(0xFF)).astype(np.int64)
        size += np.where(more, (byte & 0x7F) << (7 * i), 0)
        begin += more
        more &= byte >= 0x80
        if not more.any():
            break
    end = begin + size
    return begin, end, ~more & (end <= stops)
