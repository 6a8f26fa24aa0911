"""Runs made of formulas: what a test needs and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from forensics.model import Attempt, FloatArray, Run, Signal, SourceInfo, Span
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles


def signal_of(name: str, values: ArrayLike, steps: ArrayLike | None = None, **extra: object) -> Signal:
    """A signal at steps 0, 1, 2 ... unless others are given."""
    array = np.asarray(values)
    if array.dtype != np.int64:
        array = array.astype(np.float64)
    at = np.arange(len(array), dtype=np.int64) if steps is None else np.asarray(steps, dtype=np.int64)
    return Signal(name, at, array, spans=(Span(0, 0, len(array)),), **extra)  # type: ignore[arg-type]


def run_of(
    signals: Mapping[str, ArrayLike | Signal],
    *,
    config: Mapping[str, object] | None = None,
    notes: Mapping[str, object] | None = None,
    attempts: Sequence[Attempt] = (),
) -> Run:
    """A run with roles as the vocabulary gives them."""
    built = tuple(value if isinstance(value, Signal) else signal_of(name, value) for name, value in signals.items())
    return Run("run", "run", (SourceInfo("run/log.csv", "csv", 0),), assign_roles(built), tuple(attempts), config or {}, notes or {})


def curves_of(signals: Mapping[str, ArrayLike | Signal], **more: object) -> Curves:
    """Prepared curves of such a run."""
    return Curves(run_of(signals, **more))  # type: ignore[arg-type]


def falling(points: int, seed: int, noise: float = 0.03, tail: float | None = None) -> FloatArray:
    """A loss that falls from about 6 to about 2, with noise in its logarithm: normal, or Student's t with ``tail`` degrees."""
    rng = np.random.default_rng(seed)
    trend = 2.0 + 4.0 * np.exp(-np.arange(points) / max(points / 8, 1))
    draws = rng.standard_t(tail, points) if tail else rng.normal(size=points)
    values: FloatArray = trend * np.exp(noise * draws)
    return values


def bump(points: int, onset: int, height: float, length: int) -> FloatArray:
    """A factor that jumps up at ``onset`` and decays with ``length`` points."""
    away = np.arange(points) - onset
    values: FloatArray = 1.0 + np.where(away >= 0, height * np.exp(-away / length), 0.0)
    return values
