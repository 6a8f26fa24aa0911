"""Which rank stands out at a step, where losses or gradient norms are logged per rank."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role, normalise

FEWEST = 3
"""Ranks that make a crowd to stand out from."""

OUT = 8.0
"""Distance from the median of the ranks, in their usual spread, from which one stands out."""

LEAST = 1.5
"""... and factor from the others' median, so that equal ranks with a rounding difference show nothing."""

_RANK = re.compile(r"(?:^|_)(?:rank|dp|gpu|device|worker)_?\d+(?:_|$)")


@dataclass(frozen=True, slots=True)
class Outlier:
    """One rank's value at a step against the median of all."""

    name: str
    step: int
    value: float
    others: float


def per_rank(curves: Curves) -> tuple[Prepared, ...]:
    """Losses or gradient norms of single ranks."""
    logged = [s for s in curves.every(Role.RANK_LOSS) if len(s)]
    if len(logged) >= FEWEST:
        return tuple(logged)
    norms = [s for s in curves.every(Role.GRAD_NORM_GROUP, Role.GRAD_NORM) if len(s) and _RANK.search(normalise(s.name))]
    return tuple(norms) if len(norms) >= FEWEST else ()


def outlier(curves: Curves, step: int) -> Outlier | None:
    """The rank that stands out at a step; None where none does, or fewer than FEWEST ranks are logged there."""
    found = [(s, s.at(step)) for s in per_rank(curves)]
    there = [(s, i) for s, i in found if i < len(s) and s.steps[i] == step]
    if len(there) < FEWEST:
        return None
    values = np.array([s.values[i] for s, i in there])
    middle = float(np.median(values))
    spread = max(_spread([s for s, _ in there], step), 1e-12)
    far = int(np.argmax(np.abs(values - middle)))
    value = float(values[far])
    away = max(abs(value), abs(middle)) > LEAST * max(min(abs(value), abs(middle)), 1e-12)
    return Outlier(there[far][0].name, step, value, middle) if abs(value - middle) > OUT * spread and away else None


def _spread(signals: list[Prepared], step: int) -> float:
    """How far ranks usually are apart: median distance from their median over the points before."""
    rows = [s.values[max(0, s.at(step) - 50) : s.at(step)] for s in signals]
    points = min(len(r) for r in rows)
    if points < 5:
        return float("inf")
    table = np.vstack([r[-points:] for r in rows])
    return float(np.median(np.abs(table - np.median(table, axis=0)))) * 1.4826
