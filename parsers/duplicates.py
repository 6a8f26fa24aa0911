"""One curve that several formats of a run hold: compared step by step, never counted twice.

The second copy stands in the run as ``name@format`` and takes no part in the analysis. Here it vouches for the first, or
tells that one of the two is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray, IntArray, Signal

MARK = "@"
"""Stands between the name of a signal and the format of its second copy."""

FLOAT32 = 1.2e-7
"""Relative distance of a number and the float32 it was stored as."""

MOST_DECIMALS = 9
"""Numbers written with more decimals than this were not rounded for reading."""

SAME_CURVE = 0.9
"""Share of shared steps that must agree for two records to be copies of one curve: averages and other metrics agree nowhere."""

FEWEST = 8
"""Shared steps below which agreement is chance."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the steps that both copies hold say."""

    steps: IntArray
    """Shared steps where they differ, (differing,)."""
    first: FloatArray
    second: FloatArray
    shared: int

    @property
    def copies(self) -> bool:
        """Whether they are two records of one curve."""
        return self.shared >= FEWEST and len(self.steps) <= (1 - SAME_CURVE) * self.shared


def compare(one: Signal, other: Signal) -> Comparison:
    """Set two signals side by side at their shared steps, as exactly as the coarser of the two was written."""
    a, b = one.curve(), other.curve()
    steps, at, in_other = np.intersect1d(a.steps, b.steps, assume_unique=True, return_indices=True)
    first, second = a.values[at], b.values[in_other]
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = max(_rounding(first), _rounding(second)) + FLOAT32 * np.maximum(np.abs(first), np.abs(second))
        same = (np.abs(first - second) <= allowed) & np.isfinite(first) & np.isfinite(second)
    same |= (first == second) | (np.isnan(first) & np.isnan(second))
    return Comparison(steps[~same], first[~same], second[~same], len(steps))


def facts(signals: Sequence[Signal]) -> Mapping[str, object]:
    """Notes about every pair: which copies agree, and which differ where."""
    by_name = {s.name: s for s in signals}
    agree: list[str] = []
    differ: list[str] = []
    for name, copy in by_name.items():
        base, mark, kind = name.rpartition(MARK)
        if not mark or base not in by_name or not _of_format(copy, by_name[base]):
            continue
        found = compare(by_name[base], copy)
        if not found.copies:
            continue
        if not len(found.steps):
            agree.append(f"{base}: {kind} agrees at all {found.shared} shared steps")
        else:
            values = f"{found.second[0]:.6g} there, {found.first[0]:.6g} in the source that was used"
            differ.append(f"{base}: {kind} differs at {len(found.steps)} of {found.shared} shared steps, first at step {int(found.steps[0])} ({values})")
    notes: dict[str, object] = {}
    if agree:
        notes["copies_agree"] = agree
    if differ:
        notes["copies_differ"] = differ
    return notes


def _of_format(copy: Signal, original: Signal) -> bool:
    """Two sources wrote them: a logged name may hold the mark itself (``precision@10``)."""
    return bool(copy.spans) and not {s.source for s in copy.spans} & {s.source for s in original.spans}


def _rounding(values: FloatArray) -> float:
    """Half a unit of the last decimal that the numbers were written with, or 0 where they were not rounded."""
    finite = values[np.isfinite(values) & (np.abs(values) < 1e15 / 10**MOST_DECIMALS)]
    if not len(finite):
        return 0.0
    for decimals in range(MOST_DECIMALS):
        if bool((np.round(finite, decimals) == finite).all()):
            return 0.5 * 10.0**-decimals * 1.000001 if decimals else 0.0
    return 0.0
