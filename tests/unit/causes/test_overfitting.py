"""Overfitting: a held-out loss that rises, one that is flat, another event, no held-out loss."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent

from forensics.causes.data import overfitting as rule


def evaluated(rise: float) -> Story:
    story = Story()
    t = np.arange(story.points)
    story.loss = 2.0 * np.exp(-t / 800) * np.exp(0.01 * np.random.default_rng(2).normal(size=story.points))
    story.more["val_loss"] = 2.0 * np.exp(-np.minimum(t, AT) / 800) * np.exp(rise * np.clip(t - AT, 0, None) / 600)
    story.more["epoch"] = t / 300
    return story


def test_a_held_out_loss_that_rises_while_training_goes_on() -> None:
    found = examine(rule, evaluated(0.5).run())
    assert holds(found)
    assert {"val_loss", "epoch"} <= signals(found.supporting)


def test_a_spike_in_the_same_kind_of_run_is_not_its_matter() -> None:
    story = evaluated(0.0)
    story.loss[AT] *= 2
    assert silent(examine(rule, story.run()))


def test_a_missing_held_out_loss_is_asked_for() -> None:
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("held-out" in need for need in found.missing)
