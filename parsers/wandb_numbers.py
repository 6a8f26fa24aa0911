"""Numbers out of JSON texts that lie scattered in a buffer, a few hundred thousand at a time.

The texts are copied right-aligned into lines of fixed width, which the CSV reader of polars turns into exact doubles or
integers many times faster than ``float()``. What it cannot take (booleans, over-long numbers, other JSON) goes one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import BoolArray, FloatArray, IntArray, NumArray
from forensics.parsers.wandb_framing import ByteArray, words
from forensics.parsers.wandb_wire import number

WIDTH = 23
"""Bytes of a text that fits a line: all but some of the tiniest negative doubles do. With its line break a line is three
words long, so that it is copied and padded by words."""

FEW = 2_000
"""Up to this many texts ``float()`` is quicker than loading polars."""

EXACT = float(1 << 53)
"""Below this a double holds an integer exactly, and the length of its text tells whether it was written as one."""

_POWERS = 10 ** np.arange(1, 17)
_STARTS = np.zeros(256, np.bool_)
_STARTS[list(b"-0123456789NI")] = True
_BOOLEAN = np.zeros(256, np.bool_)
_BOOLEAN[list(b"tf")] = True
_LINE = WIDTH + 1
_KEEP = np.array([[0xFF if WIDTH - n <= i < WIDTH else 0 for i in range(_LINE)] for n in range(_LINE)], np.uint8)
_FILL = np.array([[0x20 if i < WIDTH - n else 0x0A if i == WIDTH else 0 for i in range(_LINE)] for n in range(_LINE)], np.uint8)
_KEEP_LINES, _FILL_LINES = words(_KEEP.ravel(), _LINE)[::_LINE], words(_FILL.ravel(), _LINE)[::_LINE]
"""What is kept of a window that ends a text, and what is put around it, by the length of the text."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values, shape (texts,), and which texts are numbers. Where ``values`` are int64 every number is an exact integer."""

    values: NumArray
    valid: BoolArray


def parse(data: ByteArray, at: IntArray, length: IntArray) -> Numbers:
    """Texts ``data[at : at + length]`` as float64; booleans count as 0 and 1."""
    if len(at) <= FEW:
        return _one_by_one(data, at, length)
    plain = _STARTS[data[at]] & (length > 0) & (length <= WIDTH)
    every = bool(plain.all())
    lines = (at, length) if every else (at[plain], length[plain])
    read = _lines(data, *lines, integer=False)
    if read is None:
        return _one_by_one(data, at, length)
    if every and read.valid.all():
        return read
    values = np.full(len(at), np.nan)
    valid = np.zeros(len(at), np.bool_)
    values[plain], valid[plain] = read.values, read.valid
    rest = np.flatnonzero(~valid & _scalar(data, at, length))
    others = _one_by_one(data, at[rest], length[rest])
    values[rest], valid[rest] = others.values, others.valid
    return Numbers(values, valid)


def integers(data: ByteArray, at: IntArray, length: IntArray, values: NumArray) -> Numbers:
    """Texts as int64, given their ``values``; those that are written as floats, or do not fit, are not valid."""
    if len(values) and bool((np.abs(values) < EXACT).all()):
        whole = values.astype(np.int64)
        digits = np.searchsorted(_POWERS, np.abs(whole), side="right") + 1
        return Numbers(whole, (length == digits + (whole < 0)) | _BOOLEAN[data[at]])
    if len(at) > FEW and bool((length <= WIDTH).all()) and (read := _lines(data, at, length, integer=True)):
        return read
    found = [number(data[a : a + n].tobytes()) for a, n in zip(at.tolist(), length.tolist(), strict=True)]
    valid = np.array([isinstance(value, int) for value in found], np.bool_)
    return Numbers(np.array([value if isinstance(value, int) else 0 for value in found], np.int64), valid)


def _lines(data: ByteArray, at: IntArray, length: IntArray, *, integer: bool) -> Numbers | None:
    """Read texts of at most WIDTH bytes; None where a text holds a line break and the lines no longer match."""
    import polars as pl  # noqa: PLC0415 - a fifth of a second that small files need not pay

    if not len(at):
        return Numbers(np.empty(0), np.empty(0, np.bool_))
    lines = words(data, _LINE)[at + length - WIDTH].view("<u8")
    lines &= _KEEP_LINES[length].view("<u8")
    lines |= _FILL_LINES[length].view("<u8")
    kind = pl.Int64 if integer else pl.Float64
    frame = pl.read_csv(
        lines.tobytes(), has_header=False, schema={"value": kind}, separator="\x1f", quote_char=None, ignore_errors=True
    )
    series = frame["value"]
    if len(series) != len(at):
        return None
    if not series.null_count():
        return Numbers(series.to_numpy(), np.ones(len(at), np.bool_))
    valid = series.is_not_null().to_numpy()
    values: NumArray = series.fill_null(0).to_numpy()
    return Numbers(values, valid)


def _scalar(data: ByteArray, at: IntArray, length: IntArray) -> BoolArray:
    """Texts that may be a boolean or a number: not a JSON string, list, object or null."""
    return (length > 0) & (_STARTS | _BOOLEAN)[data[at]]


def _one_by_one(data: ByteArray, at: IntArray, length: IntArray) -> Numbers:
    found = [number(data[a : a + n].tobytes()) for a, n in zip(at.tolist(), length.tolist(), strict=True)]
    values: FloatArray = np.array([np.nan if value is None else float(value) for value in found], np.float64)
    return Numbers(values, np.array([value is not None for value in found], np.bool_))
