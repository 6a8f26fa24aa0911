"""Gradient norms that were logged before unscaling: they carry the loss scale of their step, and are divided by it.

Some float16 trainers log the norm of the scaled gradient. Then it doubles with the scale, and a scaler at work looks like a
surge. A norm that was already unscaled does not follow the scale, and is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import BoolArray, Curve, FloatArray, Signal

FEWEST_CHANGES = 2
"""Changes of the loss scale that the norm must have followed."""

SIDE_POINTS = 10
"""Points on either side of a change that are compared."""

UNEXPLAINED = 0.3
"""Share of the norm's own changes that may be left after division; a norm that ignores the scale leaves more than all."""

SMALLEST_MOVE = 0.5
"""Root mean square change of the norm, in log units, without which it followed nothing (a doubling is 0.69)."""


@dataclass(frozen=True, slots=True)
class Unscaled:
    """``values`` (points,) divided by the loss scale of their step; ``stale`` (points,) repeats of an older value on skipped steps."""

    values: FloatArray
    stale: BoolArray


def unscale(curve: Curve, scale: Signal, attempts: int | None = None) -> Unscaled | None:
    """The curve of a gradient norm divided by the loss scale, or None where it does not carry it."""
    scales = scale.curve(attempts)
    usable = np.isfinite(scales.values) & (scales.values > 0)
    if usable.sum() < FEWEST_CHANGES + 1 or len(curve) < FEWEST_CHANGES + 1:
        return None
    steps, factors = scales.steps[usable], scales.values[usable]
    at = np.searchsorted(steps, curve.steps, side="right") - 1
    factor = factors[np.maximum(at, 0)]
    fresh = np.isfinite(curve.values) & (curve.values > 0)
    stale = np.zeros(len(curve), dtype=bool)
    stale[1:] = fresh[1:] & (curve.values[1:] == curve.values[:-1])
    if not _carries(np.log(np.where(fresh, curve.values, 1.0)), np.log(factor), fresh & ~stale):
        return None
    return Unscaled(curve.values / factor, stale)


def _carries(norm: FloatArray, scale: FloatArray, fresh: BoolArray) -> bool:
    """Did the norm follow the changes of the scale? Compared are medians of the points next to each change."""
    x, s = norm[fresh], scale[fresh]
    changes = np.flatnonzero(np.diff(s) != 0) + 1
    if len(changes) < FEWEST_CHANGES:
        return False
    edges = [0, *changes.tolist(), len(s)]
    moved, left = [], []
    for k in range(1, len(edges) - 1):
        before = x[max(edges[k - 1], edges[k] - SIDE_POINTS) : edges[k]]
        after = x[edges[k] : min(edges[k + 1], edges[k] + SIDE_POINTS)]
        move = float(np.median(after) - np.median(before))
        moved.append(move)
        left.append(move - float(s[edges[k]] - s[edges[k] - 1]))
    own, rest = float(np.mean(np.square(moved))), float(np.mean(np.square(left)))
    return own >= SMALLEST_MOVE**2 and rest <= UNEXPLAINED * own
