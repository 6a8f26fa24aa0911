"""Whether a checkpoint is fit to be resumed from, judged by its numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.model.checkpoint import Checkpoint, Fault, TensorKind, TensorStats
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.replicas import unequal_replicas
from forensics.parsers.checkpoints.stats import measure

READ_BYTES = 8 << 30
"""Checkpoints up to this size are read whole when nothing else is asked for: some ten seconds from a local disk."""

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Health:
    """``good`` is None where the numbers were not read; ``faults`` worst first."""

    good: bool | None
    faults: tuple[Fault, ...] = ()
    damage: tuple[Damage, ...] = ()


def health(checkpoint: Checkpoint, limit: int = READ_BYTES) -> Health:
    """Read the numbers of a checkpoint up to ``limit`` bytes and judge them."""
    if checkpoint.damage:
        return Health(False, (), checkpoint.damage)
    if checkpoint.size > limit:
        return Health(None)
    measured = measure(checkpoint)
    faults = [f for t in checkpoint.tensors if (s := measured.stats.get((t.name, t.kind))) is not None for f in faults_of(t.name, t.kind, s)]
    faults += unequal_replicas(checkpoint)
    faults.sort(key=lambda f: (f.kind != TensorKind.PARAM, -abs(f.value or 0.0)))
    return Health(not faults and not measured.damage, tuple(faults), measured.damage)


def faults_of(name: str, kind: TensorKind, stats: TensorStats) -> list[Fault]:
    """What is wrong with a tensor by its own numbers."""
    out = []
    what = "" if kind is TensorKind.PARAM else f" ({kind.value})"
    if stats.non_finite:
        text = f"{name}{what}: {stats.non_finite:,} of {stats.elements:,} elements are not finite, the first at {list(stats.first_bad or ())}"
        out.append(Fault(name, kind, text, stats.first_bad))
    for stray in stats.outliers[:MOST_NAMED]:
        text = f"{name}{what}: element {list(stray.index)} is {stray.value:.6g}, the largest of the others {stray.usual:.3g}"
        if stray.bit is not None:
            text += f"; with bit {stray.bit} (exponent) flipped back it would be {stray.unflipped:.3g}"
        out.append(Fault(name, kind, text, stray.index, stray.value))
    return out


@dataclass(frozen=True, slots=True)
class Around:
    """The last good checkpoint at or before a step, and the first bad one after it; None where there is none."""

    last_good: Checkpoint | None
    first_bad: Checkpoint | None


def around(checkpoints: Sequence[Checkpoint], step: int, limit: int = READ_BYTES) -> Around:
    """Judge checkpoints around a step: backwards to the last good one, forwards to the first bad one."""
    ordered = sorted((c for c in checkpoints if c.step is not None), key=lambda c: c.step or 0)
    bad: Checkpoint | None = None
    for checkpoint in reversed([c for c in ordered if c.step is not None and c.step <= step]):
        if health(checkpoint, limit).good is False:
            bad = checkpoint
            continue
        return Around(checkpoint, bad or _first_bad([c for c in ordered if c.step is not None and c.step > step], limit))
    return Around(None, bad)


def last_good_before(checkpoints: Sequence[Checkpoint], step: int, limit: int = READ_BYTES) -> Checkpoint | None:
    """The newest checkpoint from which step ``step`` can be taken again: saved at it or before it, and not damaged."""
    return around(checkpoints, step, limit).last_good


def _first_bad(later: Sequence[Checkpoint], limit: int) -> Checkpoint | None:
    return next((c for c in later if health(c, limit).good is False), None)
