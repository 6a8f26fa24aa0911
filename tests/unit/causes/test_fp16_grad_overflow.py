"""Overflow of float16 gradients: a burst, single halvings, a loss that rose first, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, bad_batch, examine, falling_scale, holds, signals, silent

from forensics.causes.precision import fp16_grad_overflow as rule


def test_a_burst_of_halvings_with_infinite_gradients() -> None:
    found = examine(rule, falling_scale(4, recovers=True).run())
    assert holds(found)
    assert {"loss_scale", "grad_norm"} <= signals(found.supporting)


def test_one_halving_per_interval_is_excluded() -> None:
    story = bad_batch()
    story.more["loss_scale"] = np.where(np.arange(story.points) // 300 % 2 == 0, 65536.0, 32768.0)
    assert examine(rule, story.run()).excluded


def test_a_loss_that_rose_first_speaks_against_it() -> None:
    story = falling_scale(4, recovers=True)
    story.loss = story.loss * story.fade(0.8, 60, at=AT - 8)
    assert "loss" in signals(examine(rule, story.run()).against)


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)
