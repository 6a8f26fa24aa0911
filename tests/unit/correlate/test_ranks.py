"""The rank that stands out: too few ranks, no history, all together, rounding, and one alone."""

from __future__ import annotations

import numpy as np

from forensics.correlate.ranks import outlier, per_rank
from forensics.model import FloatArray, Run, Signal
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles


def curves(ranks: int = 4, points: int = 200, names: str = "loss_rank{}", **changed: FloatArray) -> Curves:
    steps = np.arange(points, dtype=np.int64)
    rng = np.random.default_rng(0)
    values = {names.format(k): 2 * np.exp(0.05 * rng.normal(size=points)) for k in range(ranks)}
    values |= changed
    return Curves(Run("run", "run", (), assign_roles([Signal("loss", steps, np.ones(points)), *(Signal(n, steps, v) for n, v in values.items())])))


def broken(points: int = 200, factor: float = 5.0) -> FloatArray:
    values = 2 * np.exp(0.05 * np.random.default_rng(9).normal(size=points))
    values[150] *= factor
    return values


def test_two_ranks_are_no_crowd() -> None:
    assert outlier(curves(ranks=2), 150) is None
    assert per_rank(curves(ranks=2)) == ()


def test_a_step_that_was_not_logged() -> None:
    assert outlier(curves(), 5000) is None


def test_without_a_history_nobody_stands_out() -> None:
    assert outlier(curves(loss_rank2=broken()), 2) is None


def test_ranks_that_move_together() -> None:
    found = curves()
    assert outlier(found, 150) is None


def test_a_small_difference_of_equal_ranks_is_rounding() -> None:
    equal = {f"loss_rank{k}": np.full(200, 2.0) for k in range(4)}
    equal["loss_rank1"] = np.where(np.arange(200) == 150, 2.001, 2.0)
    assert outlier(curves(**equal), 150) is None


def test_one_rank_alone() -> None:
    found = outlier(curves(loss_rank2=broken()), 150)
    assert found is not None
    assert found.name == "loss_rank2"
    assert found.value > 3 * found.others


def test_gradient_norms_per_rank() -> None:
    found = curves(names="grad_norm/rank_{}")
    assert len(per_rank(found)) >= 3
