"""The checkpoints of a run, read as far as it pays: facts always, numbers near the steps that matter first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from forensics.model.checkpoint import Checkpoint, Inspected, TensorKind
from forensics.parsers.checkpoints.differences import compare
from forensics.parsers.checkpoints.health import faults_of
from forensics.parsers.checkpoints.replicas import unequal_replicas
from forensics.parsers.checkpoints.stats import measure

AUTO_BYTES = 2 << 30
"""Bytes of checkpoints whose numbers are read when nothing else is asked for: about two seconds."""

MOST_CHANGES = 50
"""Pairs of checkpoints that are compared."""


def inspect_all(checkpoints: Sequence[Checkpoint], steps: Sequence[int], *, everything: bool = False) -> tuple[Inspected, ...]:
    """Read numbers up to AUTO_BYTES in all, checkpoints nearest to ``steps`` first; all of them if asked to."""
    order = sorted(range(len(checkpoints)), key=lambda i: (_distance(checkpoints[i], steps), -i))
    budget = AUTO_BYTES
    found: dict[int, Inspected] = {}
    for i in order:
        checkpoint = checkpoints[i]
        if not everything and checkpoint.size > budget:
            why = f"{checkpoint.size:,} bytes; numbers are read up to {AUTO_BYTES >> 30} GiB in all, --checkpoints all reads them"
            found[i] = Inspected(checkpoint, unread=why)
            continue
        budget -= checkpoint.size
        found[i] = inspect(checkpoint)
    return _with_changes([found[i] for i in range(len(checkpoints))])


def _distance(checkpoint: Checkpoint, steps: Sequence[int]) -> float:
    if checkpoint.step is None:
        return float("inf")
    return min((abs(checkpoint.step - s) for s in steps), default=0)


def inspect(checkpoint: Checkpoint) -> Inspected:
    """Read the numbers of one checkpoint."""
    if not checkpoint.tensors:
        return Inspected(checkpoint, {})
    measured = measure(checkpoint)
    faults = [f for t in checkpoint.tensors if (s := measured.stats.get((t.name, t.kind))) is not None for f in faults_of(t.name, t.kind, s)]
    faults += unequal_replicas(checkpoint)
    faults.sort(key=lambda f: (f.kind is not TensorKind.PARAM, -abs(f.value or 0.0)))
    return Inspected(checkpoint, measured.stats, tuple(faults), damage=measured.damage)


def _with_changes(inspected: Sequence[Inspected]) -> tuple[Inspected, ...]:
    """What moved since the checkpoint before, where the numbers of both were read."""
    out = list(inspected)
    read = [i for i, one in enumerate(inspected) if one.stats and one.step is not None]
    for before, after in list(pairwise(read))[-MOST_CHANGES:]:
        first, second = inspected[before], inspected[after]
        if first.step == second.step:
            continue
        difference = compare(first.checkpoint, second.checkpoint, kinds=(TensorKind.PARAM,))
        out[after] = replace(second, changes=difference.changes, since=first.step)
    return tuple(out)
