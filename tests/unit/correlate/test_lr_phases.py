from __future__ import annotations

import itertools

import numpy as np

from forensics.correlate.profile import MOST_PHASES, clip_threshold, lr_phases
from forensics.model import Run, Signal
from forensics.primitives.curves import Curves


def run(lr: np.ndarray | None, **config: object) -> Run:
    steps = np.arange(len(lr) if lr is not None else 200, dtype=np.int64)
    signals = (Signal("loss", steps, np.linspace(3, 2, len(steps)), role="loss"),)
    if lr is not None:
        signals = (*signals, Signal("lr", steps, lr, role="lr"))
    return Run("r", "r", (), signals, config=config)


def test_without_a_learning_rate_there_are_no_phases() -> None:
    assert lr_phases(Curves(run(None), None)) == ()


def test_a_learning_rate_that_jumps_all_the_time_has_none_that_are_worth_a_name() -> None:
    lr = np.where(np.arange(3000) // 15 % 2, 1e-3, 1e-4)
    assert len(lr_phases(Curves(run(lr), None))) <= MOST_PHASES


def test_warmup_stable_decay_are_named_in_order_and_touch() -> None:
    lr = np.concatenate([np.linspace(1e-6, 1e-3, 100), np.full(600, 1e-3), np.linspace(1e-3, 1e-5, 300)])
    phases = lr_phases(Curves(run(lr), None))
    assert [p.name for p in phases] == ["warmup", "peak", "stable", "decay", "tail"]
    assert all(a.last_step == b.first_step for a, b in itertools.pairwise(phases))
    assert (phases[0].first_step, phases[-1].last_step) == (0, 999)


def test_the_clip_threshold_comes_from_the_configuration() -> None:
    assert clip_threshold(run(None), Curves(run(None), None)) is None
    configured = run(None, max_grad_norm=0.5)
    assert clip_threshold(configured, Curves(configured, None)) == 0.5
