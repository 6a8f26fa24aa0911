"""What moved between two checkpoints, tensor by tensor, whatever files and shards they are in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from forensics.model.checkpoint import Checkpoint, Outlier, Piece, TensorChange, TensorInfo, TensorKind
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.numbers import BLOCK, Floats, NumberReader
from forensics.parsers.checkpoints.stats import LEAST_ELEMENTS, THREADS, flipped_bit, place

MAX_ASSEMBLED = 1 << 30
"""Elements of a tensor that is put together from shards in memory; larger ones are compared piece by piece or not at all."""

JUMP = 32.0
"""Factor between the largest change of one element and the next largest from which it is that element's own story: changes
by an optimizer differ by its learning rate times a few."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs between two checkpoints. Names are those of the first one."""

    before: Checkpoint
    after: Checkpoint
    changes: tuple[TensorChange, ...]
    appeared: tuple[TensorInfo, ...] = ()
    vanished: tuple[TensorInfo, ...] = ()
    reshaped: tuple[tuple[TensorInfo, TensorInfo], ...] = ()
    retyped: tuple[tuple[TensorInfo, TensorInfo], ...] = ()
    damage: tuple[Damage, ...] = ()

    def of(self, kind: TensorKind) -> tuple[TensorChange, ...]:
        """Changes of tensors of one kind."""
        return tuple(c for c in self.changes if c.kind is kind)


@dataclass(slots=True)
class _Match:
    pairs: list[tuple[TensorInfo, TensorInfo]] = field(default_factory=list)
    appeared: list[TensorInfo] = field(default_factory=list)
    vanished: list[TensorInfo] = field(default_factory=list)


def compare(before: Checkpoint, after: Checkpoint, kinds: Sequence[TensorKind] | None = None, threads: int = THREADS) -> Difference:
    """Compare two checkpoints. Tensors are matched by name and kind, without prefixes that only one of them has."""
    match = _match(before, after, kinds)
    same = [(a, b) for a, b in match.pairs if a.shape == b.shape and a.location and b.location]
    lost = [a.name for a, b in match.pairs if a.shape == b.shape and not (a.location and b.location)]

    def one(pair: tuple[TensorInfo, TensorInfo]) -> TensorChange | str:
        with NumberReader() as left, NumberReader() as right:
            try:
                return _change(pair[0], pair[1], left, right)
            except (OSError, ValueError, MemoryError) as problem:
                return str(problem)

    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(one, same))
    failed = [(pair[0].name, r) for pair, r in zip(same, results, strict=True) if isinstance(r, str)]
    damage = [*before.damage, *after.damage]
    if lost or failed:
        names = [*lost, *(name for name, _ in failed)]
        why = failed[0][1] if failed else "their bytes are missing"
        damage.append(Damage(after.path, f"tensors could not be compared: {why}", f"{len(names)} tensors: {', '.join(names[:5])}"))
    return Difference(
        before,
        after,
        tuple(r for r in results if isinstance(r, TensorChange)),
        tuple(match.appeared),
        tuple(match.vanished),
        tuple((a, b) for a, b in match.pairs if a.shape != b.shape),
        tuple((a, b) for a, b in match.pairs if a.dtype != b.dtype),
        tuple(damage),
    )


def _match(before: Checkpoint, after: Checkpoint, kinds: Sequence[TensorKind] | None) -> _Match:
    left = {(t.name, t.kind): t for t in before.tensors if kinds is None or t.kind in kinds}
    right = {(t.name, t.kind): t for t in after.tensors if kinds is None or t.kind in kinds}
    prefixes = _prefixes({n for n, _ in left}, {n for n, _ in right})
    found = _Match()
    taken = set()
    for (name, kind), tensor in left.items():
        other = (prefixes.renamed(name), kind)
        if other in right:
            found.pairs.append((tensor, right[other]))
            taken.add(other)
        else:
            found.vanished.append(tensor)
    found.appeared = [t for key, t in right.items() if key not in taken]
    return found


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """What to take from the front of the first checkpoint's names, and what to put there, to get the second's."""

    take: str = ""
    put: str = ""

    def renamed(self, name: str) -> str:
        return self.put + name[len(self.take) :] if name.startswith(self.take) else name


def _prefixes(left: set[str], right: set[str]) -> _Prefixes:
    """The prefix that one side has and the other has not, where that makes more names equal."""
    best, most = _Prefixes(), len(left & right)
    if most == min(len(left), len(right)):
        return best
    heads = [_Prefixes(take=p) for p in _heads(left)] + [_Prefixes(put=p) for p in _heads(right)]
    for candidate in heads:
        count = sum(candidate.renamed(n) in right for n in left)
        if count > most:
            best, most = candidate, count
    return best


def _heads(names: set[str]) -> set[str]:
    return {".".join(n.split(".")[:k]) + "." for n in list(names)[:200] for k in (1, 2) if n.count(".") >= k}


@dataclass(slots=True)
class _Sums:
    elements: int = 0
    before: float = 0.0
    after: float = 0.0
    change: float = 0.0
    equal: int = 0
    bad_before: int = 0
    bad_after: int = 0
    peaks: list[float] = field(default_factory=list)
    top: tuple[float, Piece, int, float, float, float] | None = None
    """Size of the largest change, its piece and place, the values before and after, the next largest change in its block."""

    def add(self, piece: Piece, start: int, a: Floats, b: Floats) -> None:
        self.elements += len(a)
        same = len(a) if a is b else int(np.count_nonzero(_bits(a) == _bits(b))) if a.dtype == b.dtype else -1
        if same == len(a):
            self._still(a)
            return
        with np.errstate(all="ignore"):
            delta = b - a
            size = float(np.dot(delta, delta))
            if not math.isfinite(size):
                delta = np.where(np.isfinite(delta), delta, 0.0).astype(np.float64)
                self.bad_before += int((~np.isfinite(a)).sum())
                self.bad_after += int((~np.isfinite(b)).sum())
                size = float(np.dot(delta, delta))
            elif size < 1e-30:
                delta = b.astype(np.float64) - a
                size = float(np.dot(delta, delta))
            self.change += size
            self.before += _square(a)
            self.after += _square(b)
        self.equal += same if same >= 0 else int(np.count_nonzero(delta == 0))
        sizes = np.abs(delta)
        at = int(np.argmax(sizes))
        peak = float(sizes[at])
        self.peaks.append(peak)
        if self.top is None or peak > self.top[0]:
            sizes[at] = 0.0
            self.top = (peak, piece, start + at, float(a[at]), float(b[at]), float(sizes.max()))


    def _still(self, values: Floats) -> None:
        """A block in which nothing moved."""
        with np.errstate(all="ignore"):
            size = _square(values)
            if not math.isfinite(float(values.sum())):
                bad = int((~np.isfinite(values)).sum())
                self.bad_before += bad
                self.bad_after += bad
        self.before += size
        self.after += size
        self.equal += len(values)
        self.peaks.append(0.0)


def _bits(values: Floats) -> Floats:
    return values.view(np.int32 if values.itemsize == 4 else np.int64)


def _square(values: Floats) -> float:
    total = float(np.dot(values, values))
    if math.isfinite(total) and total >= 1e-30:
        return total
    wide = values[np.isfinite(values)].astype(np.float64)
    return float(np.dot(wide, wide))


def _change(before: TensorInfo, after: TensorInfo, left: NumberReader, right: NumberReader) -> TensorChange:
    sums = _Sums()
    for piece, start, a, b in _together(before, after, left, right):
        if len(a):
            sums.add(piece, start, a, b)
    jump, was = None, None
    at = None
    largest = 0.0
    if sums.top is not None:
        largest, piece, index, old, new, beside = sums.top
        at = place(piece, index, before.shape)
        others = sorted(sums.peaks)
        next_largest = max(beside, others[-2] if len(others) > 1 else 0.0)
        if before.kind is not TensorKind.BUFFER and sums.elements >= LEAST_ELEMENTS and largest >= JUMP * next_largest > 0 and abs(new) > abs(old):
            bit = flipped_bit(after.dtype, new, max(abs(old), math.sqrt(sums.before / sums.elements)), old)
            jump, was = Outlier(at, new, next_largest, *(bit or (None, None))), old
    return TensorChange(
        before.name,
        before.kind,
        sums.elements,
        math.sqrt(sums.before),
        math.sqrt(sums.after),
        math.sqrt(sums.change),
        sums.equal,
        largest,
        at,
        sums.bad_before,
        sums.bad_after,
        jump,
        was,
    )


def _together(before: TensorInfo, after: TensorInfo, left: NumberReader, right: NumberReader) -> Iterator[tuple[Piece, int, Floats, Floats]]:
    """Blocks of both tensors that hold the same elements."""
    if [(p.start, p.shape) for p in before.location] == [(p.start, p.shape) for p in after.location]:
        for a, b in zip(left.blocks(before), right.blocks(after), strict=True):
            yield a.piece, a.start, a.values, b.values
        return
    if before.numel > MAX_ASSEMBLED:
        raise ValueError(f"{before.name} is sharded in two ways and too large to be put together")
    whole = Piece("", 0, before.shape, (0,) * len(before.shape))
    old, new = assemble(before, left).reshape(-1), assemble(after, right).reshape(-1)
    for start in range(0, len(old), BLOCK):
        yield whole, start, old[start : start + BLOCK], new[start : start + BLOCK]


def assemble(tensor: TensorInfo, reader: NumberReader) -> Floats:
    """A whole tensor out of its pieces, in memory. Raises OSError where a piece cannot be read, ValueError where one is missing."""
    out: Floats | None = None
    covered = 0
    for piece in tensor.location:
        part = TensorInfo(tensor.name, tensor.kind, piece.shape, tensor.dtype, (piece,))
        blocks = [b.values.copy() for b in reader.blocks(part)]
        values = np.concatenate(blocks).reshape(piece.shape) if blocks else np.empty(piece.shape, np.float32)
        if piece.shape == tensor.shape:
            return values
        if out is None:
            out = np.zeros(tensor.shape, values.dtype)
        start = piece.start or (0,) * len(piece.shape)
        home = out.reshape(-1) if len(piece.shape) == 1 else out
        home[tuple(slice(s, s + n) for s, n in zip(start, piece.shape, strict=True))] = values
        covered += values.size
    if out is None or covered < tensor.numel:
        raise ValueError(f"parts of {tensor.name} are missing")
    return out


def settings_changed(before: Checkpoint, after: Checkpoint) -> Mapping[str, tuple[object, object]]:
    """Settings and facts that differ: step, those of each group, scaler, scheduler."""
    out: dict[str, tuple[object, object]] = {}
    pairs: list[tuple[str, object, object]] = [
        ("step", before.step, after.step),
        ("optimizer's step count", before.optimizer_steps, after.optimizer_steps),
        ("groups of parameters", len(before.param_groups), len(after.param_groups)),
        ("random generators", before.rng, after.rng),
    ]
    for n, (a, b) in enumerate(zip(before.param_groups, after.param_groups, strict=False)):
        pairs += [(f"group {n} {k}", getattr(a, k), getattr(b, k)) for k in ("lr", "betas", "eps", "weight_decay")]
        pairs.append((f"group {n} parameters", len(a.params), len(b.params)))
    for title, a_map, b_map in (("scaler", before.scaler, after.scaler), ("scheduler", before.scheduler, after.scheduler)):
        a_dict, b_dict = dict(a_map or {}), dict(b_map or {})
        pairs += [(f"{title} {k}", a_dict.get(k), b_dict.get(k)) for k in sorted({*a_dict, *b_dict})]
    for title, old, new in pairs:
        if old != new:
            out[title] = (old, new)
    return out
