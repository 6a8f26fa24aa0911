"""The numbers of a tensor, some at a time, as float32 or float64, whatever they are stored as.

Blocks are read into one buffer that is used again and again: memory stays the same for files of any size, and a file
that is cut while it is read ends the reading instead of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.model.checkpoint import Piece, TensorInfo
from forensics.parsers.checkpoints.tree import ITEM_BYTES

BLOCK = 1 << 16
"""Elements per block: 256 KiB of float32 stay in the cache of a core while several sums go over them."""

MAX_STRIDED_BYTES = 1 << 32
"""A tensor that is stored in another order is read whole; larger ones are not read."""

Floats = NDArray[Any]

PLAIN = {
    "float64": "f8",
    "float32": "f4",
    "float16": "f2",
    "int64": "i8",
    "int32": "i4",
    "int16": "i2",
    "int8": "i1",
    "uint64": "u8",
    "uint32": "u4",
    "uint16": "u2",
    "uint8": "u1",
    "bool": "u1",
    "qint8": "i1",
    "quint8": "u1",
    "qint32": "i4",
    "bfloat16": "u2",
    "complex64": "f4",
    "complex128": "f8",
    "complex32": "f2",
}
"""How numpy reads the bytes of a type; what else there is has one byte."""


@dataclass(frozen=True, slots=True)
class Block:
    """Elements ``start`` and following of a piece, in the order of C. ``values`` is reused: copy what is to stay."""

    piece: Piece
    start: int
    values: Floats


class ShortReadError(OSError):
    """The file ends before the tensor does."""


@dataclass(slots=True)
class NumberReader:
    """Reads blocks of tensors. One per thread: it owns its buffers and file handles."""

    files: dict[str, int] = field(default_factory=dict)
    raw: NDArray[np.uint8] = field(default_factory=lambda: np.empty(BLOCK * 16, np.uint8))

    def __enter__(self) -> NumberReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for number in self.files.values():
            os.close(number)
        self.files.clear()

    def blocks(self, tensor: TensorInfo) -> Iterator[Block]:
        """Every element of a tensor. Raises OSError where the file cannot be read, ShortReadError where it ends early."""
        for piece in tensor.location:
            if piece.strides is None:
                yield from self._contiguous(piece, tensor.dtype)
            else:
                yield from self._strided(piece, tensor.dtype)

    def _contiguous(self, piece: Piece, dtype: str) -> Iterator[Block]:
        item = ITEM_BYTES[dtype]
        total = _count(piece.shape)
        for start in range(0, total, BLOCK):
            count = min(BLOCK, total - start)
            raw = self.raw[: count * item]
            if piece.data is not None:
                raw[:] = np.frombuffer(piece.data, np.uint8, count * item, start * item)
            else:
                self._fill(piece.path, piece.offset + start * item, raw)
            yield Block(piece, start, decode(raw, dtype, piece.swapped))

    def _strided(self, piece: Piece, dtype: str) -> Iterator[Block]:
        assert piece.strides is not None
        item = ITEM_BYTES[dtype]
        reach = 1 + sum((n - 1) * s for n, s in zip(piece.shape, piece.strides, strict=True)) if _count(piece.shape) else 0
        if reach * item > MAX_STRIDED_BYTES:
            raise ShortReadError(f"a tensor of {reach * item} bytes in an order of its own is not read")
        raw = np.empty(reach * item, np.uint8)
        if piece.data is not None:
            raw[:] = np.frombuffer(piece.data, np.uint8, reach * item)
        else:
            self._fill(piece.path, piece.offset, raw)
        flat = decode(raw, dtype, piece.swapped)
        width = len(flat) // reach if reach else 1
        step = flat.itemsize * width
        view = np.lib.stride_tricks.as_strided(flat, piece.shape, tuple(s * step for s in piece.strides), writeable=False)
        values = np.ascontiguousarray(view).reshape(-1)
        for start in range(0, len(values), BLOCK):
            yield Block(piece, start, values[start : start + BLOCK])

    def _fill(self, path: str, offset: int, raw: NDArray[np.uint8]) -> None:
        if path not in self.files:
            if len(self.files) >= 64:
                os.close(self.files.pop(next(iter(self.files))))
            self.files[path] = os.open(path, os.O_RDONLY)
        number, view, done = self.files[path], raw.data, 0
        while done < len(view):
            got = os.preadv(number, [view[done:]], offset + done) if hasattr(os, "preadv") else _pread(number, view[done:], offset + done)
            if got == 0:
                raise ShortReadError(f"{path} ends before the tensor does")
            done += got


def _pread(number: int, view: memoryview, offset: int) -> int:
    data = os.pread(number, len(view), offset)
    view[: len(data)] = data
    return len(data)


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def decode(raw: NDArray[np.uint8], dtype: str, swapped: bool = False) -> Floats:
    """Bytes as numbers: float32 where that holds them, float64 for wider types; complex numbers as pairs."""
    code = PLAIN.get(dtype)
    if code is None:
        return FLOAT8[dtype][raw] if dtype in FLOAT8 else raw.astype(np.float32)
    values = raw.view(np.dtype((">" if swapped else "<") + code)) if code[1] != "1" else raw.view(code)
    if dtype == "bfloat16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    if code == "f4" and not swapped:
        return values
    wide = code in {"f8", "i8", "u8", "i4", "u4"}
    return values.astype(np.float64 if wide else np.float32)


def _float8(exponent_bits: int, bias: int, *, unsigned_zero: bool, infinities: bool) -> NDArray[np.float32]:
    """Values of the 256 codes of an 8-bit float."""
    codes = np.arange(256)
    mantissa_bits = 7 - exponent_bits
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    sign = np.where(codes & 128, -1.0, 1.0)
    values = sign * np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if unsigned_zero:
        values[128] = np.nan
    elif infinities:
        top = exponent == (1 << exponent_bits) - 1
        values[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    else:
        values[[127, 255]] = np.nan
    return np.array(values, dtype=np.float32)


def _scale8() -> NDArray[np.float32]:
    values = np.array([2.0 ** (code - 127) for code in range(255)] + [0.0], np.float32)
    values[255] = np.nan
    return values


FLOAT8 = {
    "float8_e4m3fn": _float8(4, 7, unsigned_zero=False, infinities=False),
    "float8_e5m2": _float8(5, 15, unsigned_zero=False, infinities=True),
    "float8_e4m3fnuz": _float8(4, 8, unsigned_zero=True, infinities=False),
    "float8_e5m2fnuz": _float8(5, 16, unsigned_zero=True, infinities=False),
    "float8_e8m0fnu": _scale8(),
}
"""Value of each code of the 8-bit types."""
