"""Norms, extremes, non-finite and stray elements of tensors, in one pass over the file and a second one where it pays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import local

import numpy as np

from forensics.model.checkpoint import Checkpoint, Outlier, Piece, TensorInfo, TensorKind, TensorStats
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.numbers import BLOCK, Floats, NumberReader

THREADS = 2
"""Two cores saturate the memory of a small machine; sums run outside of the interpreter's lock."""

GAPS = {TensorKind.PARAM: 32.0, TensorKind.EXP_AVG: 128.0, TensorKind.EXP_AVG_SQ: 128.0**2}
"""Factor between a stray element and the largest of the others. Healthy tensors, feature dimensions that carry most of a
language model's scale among them, stay below 10; moments of rare tokens below 30; second moments are squares."""

MOST_STRAY = 4
"""More elements than this far outside are a shape of the tensor, not stray elements."""

LEAST_ELEMENTS = 16
"""In a smaller tensor one element says little about another."""

SUSPECT = 8.0
"""A largest element below this many root mean squares cannot be stray by any of the gaps."""

DOMINANT = 0.2
"""Share of a tensor's sum of squares above which one element dominates it: in a small tensor that is all one sees of it."""

TINY = 1e-30
"""A sum of float32 squares below this may have lost some: it is made again in float64."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Statistics by (name, kind), and what could not be read."""

    stats: Mapping[tuple[str, TensorKind], TensorStats]
    damage: tuple[Damage, ...] = ()


def measure(checkpoint: Checkpoint, tensors: Sequence[TensorInfo] | None = None, threads: int = THREADS) -> Measured:
    """Statistics of every tensor, or of those given. Tensors whose bytes are missing are left out; the damage says so."""
    chosen = [t for t in (checkpoint.tensors if tensors is None else tensors) if t.location]
    mine = local()
    readers: list[NumberReader] = []

    def one(tensor: TensorInfo) -> TensorStats | str:
        if not hasattr(mine, "reader"):
            mine.reader = NumberReader()
            readers.append(mine.reader)
        try:
            return measure_tensor(tensor, mine.reader)
        except (OSError, ValueError, MemoryError) as problem:
            return str(problem)

    order = sorted(range(len(chosen)), key=lambda i: -chosen[i].numel)
    try:
        if threads > 1 and sum(t.numel for t in chosen) > 4 * BLOCK:
            with ThreadPoolExecutor(threads) as pool:
                results = list(pool.map(one, [chosen[i] for i in order]))
        else:
            results = [one(chosen[i]) for i in order]
    finally:
        for reader in readers:
            reader.__exit__(None, None, None)
    by_place = dict(zip(order, results, strict=True))
    stats: dict[tuple[str, TensorKind], TensorStats] = {}
    failed: list[str] = []
    why = ""
    for i, tensor in enumerate(chosen):
        result = by_place[i]
        if isinstance(result, TensorStats):
            stats[tensor.name, tensor.kind] = result
        else:
            failed.append(tensor.name)
            why = result
    damage = (Damage(checkpoint.path, f"tensors could not be read: {why}", f"{len(failed)} tensors: {', '.join(failed[:5])}"),) if failed else ()
    return Measured(stats, damage)


@dataclass(slots=True)
class _Pass:
    """Sums of the first pass."""

    squares: float = 0.0
    elements: int = 0
    bad: int = 0
    zeros: int = 0
    peak: float = 0.0
    first_bad: tuple[Piece, int] | None = None
    peaks: list[float] = field(default_factory=list)

    def add(self, piece: Piece, start: int, values: Floats) -> None:
        count = len(values)
        self.elements += count
        with np.errstate(all="ignore"):
            squares = float(np.dot(values, values))
            if math.isfinite(squares):
                peak = max(float(values.max()), -float(values.min()))
                if peak > 0 and squares < TINY:
                    squares = _squares(values)
            else:
                finite = np.isfinite(values)
                bad = count - int(finite.sum())
                if bad and self.first_bad is None:
                    self.first_bad = (piece, start + int(np.argmin(finite)))
                self.bad += bad
                good = values[finite] if bad else values
                squares = _squares(good)
                peak = float(np.abs(good).max()) if len(good) else 0.0
        bits = values.view(np.int32 if values.itemsize == 4 else np.int64)
        self.zeros += count - int(np.count_nonzero(bits))
        self.squares += squares
        self.peak = max(self.peak, peak)
        self.peaks.append(peak)


def _squares(values: Floats) -> float:
    wide = values.astype(np.float64)
    return float(np.dot(wide, wide))


def measure_tensor(tensor: TensorInfo, reader: NumberReader) -> TensorStats:
    """Statistics of one tensor. Raises OSError where it cannot be read."""
    sums = _Pass()
    for block in reader.blocks(tensor):
        if len(block.values):
            sums.add(block.piece, block.start, block.values)
    outliers: tuple[Outlier, ...] = ()
    gap = GAPS.get(tensor.kind)
    finite = sums.elements - sums.bad
    if gap is not None and finite >= LEAST_ELEMENTS and _suspect(sums, finite):
        outliers = _outliers(tensor, reader, sums, gap)
    first_bad = None if sums.first_bad is None else place(*sums.first_bad, tensor.shape)
    return TensorStats(sums.elements, math.sqrt(sums.squares), sums.peak, sums.bad, sums.zeros, outliers, first_bad)


def _suspect(sums: _Pass, count: int) -> bool:
    """Whether the largest element may be stray: it is far above the mean, or makes up so much of it that the mean says nothing."""
    return sums.peak > SUSPECT * math.sqrt(sums.squares / count) or sums.peak**2 > DOMINANT * sums.squares


def place(piece: Piece, at: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index in the whole tensor of element ``at`` of a piece; a piece may be a part of the tensor as if that were flat."""
    if len(piece.shape) == 1 and len(shape) != 1:
        return tuple(int(i) for i in np.unravel_index((piece.start[0] if piece.start else 0) + at, shape)) if shape else ()
    inside = np.unravel_index(at, piece.shape) if piece.shape else ()
    start = piece.start or (0,) * len(piece.shape)
    return tuple(int(i) + s for i, s in zip(inside, start, strict=True))


@dataclass(frozen=True, slots=True)
class _Top:
    size: float
    value: float
    piece: Piece
    at: int


def _outliers(tensor: TensorInfo, reader: NumberReader, sums: _Pass, gap: float) -> tuple[Outlier, ...]:
    """Elements behind a gap, largest first: the blocks with the largest peaks are read again."""
    enough = sorted(sums.peaks, reverse=True)[: MOST_STRAY + 1][-1]
    top: list[_Top] = []
    for block, peak in zip((b for b in reader.blocks(tensor) if len(b.values)), sums.peaks, strict=True):
        if peak >= enough:
            top += _largest(block.piece, block.start, block.values)
            top = sorted(top, key=lambda t: -t.size)[: MOST_STRAY + 1]
    for count in range(1, min(MOST_STRAY, len(top) - 1) + 1):
        usual = top[count].size
        if top[count - 1].size >= gap * usual:
            if usual == 0.0:
                return ()
            return tuple(_outlier(tensor, t, usual) for t in top[:count])
    return ()


def _largest(piece: Piece, start: int, values: Floats) -> list[_Top]:
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    count = min(MOST_STRAY + 1, len(sizes))
    where = np.argpartition(sizes, len(sizes) - count)[len(sizes) - count :]
    return [_Top(float(sizes[i]), float(values[i]), piece, start + int(i)) for i in where]


def _outlier(tensor: TensorInfo, top: _Top, usual: float) -> Outlier:
    flip = flipped_bit(tensor.dtype, top.value, usual)
    return Outlier(place(top.piece, top.at, tensor.shape), top.value, usual, *(flip or (None, None)))


EXPONENTS = {"float64": (np.uint64, np.float64, 52, 63), "float32": (np.uint32, np.float32, 23, 31), "float16": (np.uint16, np.float16, 10, 15)}
"""Type of the bits, of the value, lowest bit of the exponent, bit of the sign."""

PLAUSIBLE = 1e-4
"""An unflipped value below this share of the largest usual one is no likelier than the flip itself."""


def flipped_bit(dtype: str, value: float, usual: float, expected: float | None = None) -> tuple[int, float] | None:
    """The exponent bit whose flip alone makes a value usual again, and that value; None where none or several would.

    ``expected`` is the value of an earlier checkpoint, where there is one: the flip must then lead near it.
    """
    shape = EXPONENTS.get("float32" if dtype == "bfloat16" else dtype)
    if shape is None or not math.isfinite(value):
        return None
    whole, kind, lowest, sign = shape
    bits = int(np.array([value], kind).view(whole)[0])
    found = []
    for bit in range(lowest, sign):
        other = float(np.array([bits ^ (1 << bit)], whole).view(kind)[0])
        near = expected is None or abs(other - expected) <= 0.5 * abs(expected) + 0.02 * usual
        if near and PLAUSIBLE * usual <= abs(other) <= usual:
            found.append((bit - 16 if dtype == "bfloat16" else bit, other))
    return found[0] if len(found) == 1 else None


def totals(stats: Iterable[TensorStats]) -> float:
    """The L2 norm over several tensors."""
    return math.sqrt(sum(s.norm**2 for s in stats))
