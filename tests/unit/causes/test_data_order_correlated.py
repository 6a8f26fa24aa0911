"""Data in a poor order: the held-out loss does not follow, it follows, it is not logged, it is too sparse."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, new_data, signals, silent, swinging

from forensics.causes.data import data_order_correlated as rule
from forensics.model import EventKind, Run, Signal
from forensics.vocabulary import assign_roles


def evaluated(story: Story, *, follows: bool, every: int = 25) -> Run:
    run = story.run()
    steps = np.arange(0, story.points, every, dtype=np.int64)
    smooth = 2.1 + np.exp(-np.arange(story.points) / 300)
    values = (story.loss if follows else smooth)[steps]
    signals_ = assign_roles((*run.signals, Signal("val_loss", steps, values)))
    return Run(run.path, run.name, run.sources, signals_, run.attempts, run.config)


def test_a_swing_that_the_held_out_loss_does_not_share() -> None:
    found = ask(rule, evaluated(swinging(), follows=False), EventKind.OSCILLATION)
    assert holds(found)
    assert {"val_loss", "grad_norm"} <= signals(found.supporting)


def test_a_held_out_loss_that_follows_excludes_it() -> None:
    assert ask(rule, evaluated(new_data(), follows=True), EventKind.LEVEL_SHIFT).excluded


def test_a_spike_is_not_its_matter() -> None:
    assert silent(ask(rule, evaluated(new_data(), follows=False), EventKind.SPIKE))


def test_a_missing_or_sparse_held_out_loss_is_asked_for() -> None:
    found = ask(rule, swinging().run(), EventKind.OSCILLATION)
    assert silent(found)
    assert any("held-out" in need for need in found.missing)
    assert silent(ask(rule, evaluated(swinging(), follows=False, every=500), EventKind.OSCILLATION))
