"""What could not be looked at: roles that are not logged, coarse logging, gaps, and units that had to be repaired."""

from __future__ import annotations

import numpy as np

from forensics.correlate.coverage import not_checked
from forensics.model import FloatArray, IntArray, Run, Signal
from forensics.vocabulary import assign_roles


def told(steps: IntArray, **values: FloatArray) -> dict[str, str]:
    signals = [Signal(name, steps, v) for name, v in values.items()]
    return {n.what: n.why for n in not_checked(Run("run", "run", (), assign_roles(signals)))}


def test_nothing_logged() -> None:
    assert {"loss", "grad_norm", "lr", "batch_id"} <= set(told(np.arange(0, dtype=np.int64)))


def test_every_step_logged_says_nothing_of_steps() -> None:
    steps = np.arange(100, dtype=np.int64)
    assert not {"single steps", "missing steps"} & set(told(steps, loss=np.ones(100)))


def test_coarse_logging() -> None:
    steps = np.arange(0, 1000, 10, dtype=np.int64)
    found = told(steps, loss=np.ones(100))
    assert "every 10 steps" in found["single steps"]
    assert "missing steps" not in found


def test_excerpts_have_gaps_and_are_not_coarse() -> None:
    steps = np.concatenate([np.arange(100), np.arange(5000, 5100), np.arange(5200, 5300)]).astype(np.int64)
    found = told(steps, loss=np.ones(300))
    assert "single steps" not in found
    assert "2 gaps (the longest from 99 to 5000)" in found["missing steps"]


def test_a_repaired_unit_is_told() -> None:
    steps = np.arange(400, dtype=np.int64)
    scale = np.repeat([1024.0, 2048.0, 4096.0, 8192.0], 100)
    assert "unit of the gradient norm" in told(steps, loss=np.ones(400), loss_scale=scale, grad_norm=0.5 * scale)
    assert "unit of the gradient norm" not in told(steps, loss=np.ones(400), loss_scale=scale, grad_norm=np.full(400, 0.5))
