"""Gradient norms that carry the loss scale: none logged, a norm that ignores it, overflows, skipped steps, and those that carry it."""

from __future__ import annotations

import numpy as np

from forensics.model import FloatArray, Run, Signal
from forensics.primitives.curves import Curves
from forensics.primitives.units import Unscaled, unscale
from forensics.vocabulary import assign_roles

POINTS = 400


def signal(values: FloatArray, name: str = "grad_norm") -> Signal:
    return Signal(name, np.arange(len(values), dtype=np.int64), np.asarray(values, dtype=np.float64))


def norms(seed: int = 0) -> FloatArray:
    return 0.5 * np.exp(0.15 * np.random.default_rng(seed).normal(size=POINTS))


def steps(*levels: float) -> FloatArray:
    return np.repeat(levels, POINTS // len(levels)).astype(np.float64)


def repaired(grad: FloatArray, scale: FloatArray) -> Unscaled | None:
    return unscale(signal(grad).curve(), signal(scale, "loss_scale"))


def test_too_little_to_tell() -> None:
    assert repaired(np.array([1.0]), np.array([2.0])) is None
    assert repaired(np.full(POINTS, np.nan), steps(1, 2, 4, 8)) is None
    assert repaired(norms(), np.full(POINTS, np.nan)) is None
    assert repaired(np.zeros(POINTS), steps(1, 2, 4, 8)) is None


def test_a_norm_that_ignores_the_scale_is_left_alone() -> None:
    assert repaired(norms(), steps(2.0**12, 2.0**13, 2.0**14, 2.0**15)) is None


def test_an_explosion_that_lowers_the_scale_is_no_unit() -> None:
    grad, scale = norms(), steps(2.0**16, 2.0**16, 2.0**8, 2.0**8)
    scale[200:208] = 2.0 ** np.arange(15, 7, -1)
    grad[198:] *= 50
    assert repaired(grad, scale) is None


def test_one_change_proves_nothing() -> None:
    scale = steps(2.0**12, 2.0**13)
    assert repaired(norms() * scale, scale) is None


def test_a_norm_that_carries_the_scale_is_divided() -> None:
    grad, scale = norms(), steps(2.0**12, 2.0**13, 2.0**10, 2.0**11)
    found = repaired(grad * scale, scale)
    assert found is not None
    assert np.allclose(found.values, grad)
    assert not found.stale.any()


def test_repeats_on_skipped_steps_are_stale() -> None:
    grad, scale = norms(), steps(2.0**12, 2.0**13, 2.0**14, 2.0**15)
    logged = grad * scale
    logged[350:355] = logged[350]
    scale[351:355] = 2.0 ** np.arange(14, 10, -1)
    scale[355:] = 2.0**11
    logged[355:] = grad[355:] * 2.0**11
    found = repaired(logged, scale)
    assert found is not None
    assert np.flatnonzero(found.stale).tolist() == [351, 352, 353, 354]


def test_curves_of_a_run_are_divided_and_say_so() -> None:
    scale = steps(2.0**12, 2.0**13, 2.0**10, 2.0**11)
    signals = assign_roles([signal(norms() * scale), signal(scale, "loss_scale"), signal(norms(1), "grad/embed")])
    curves = Curves(Run("run", "run", (), signals))
    grad = curves.get("grad_norm")
    assert grad is not None
    assert grad.unscaled
    assert float(np.median(grad.values)) < 1
    assert all(not p.unscaled for p in curves.every("grad_norm_group"))
