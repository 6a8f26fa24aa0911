"""Drops at the start of an epoch: elsewhere, no epoch logged, odd epochs, reckoned from samples, logged."""

from __future__ import annotations

import numpy as np
import pytest
from cause_events import ask
from cause_runs import AT, Story, holds, silent

from forensics.causes.data import epoch_boundary_step as rule
from forensics.model import EventKind


def dropped(turn: int = AT, logged: str = "epoch") -> Story:
    """The loss falls at step AT; an epoch turns at ``turn``."""
    story = Story()
    t = np.arange(story.points)
    story.loss = story.loss * story.step_to(0.8)
    if logged == "epoch":
        story.more["epoch"] = t / turn
    if logged == "samples":
        story.more["consumed_samples"] = 8.0 * t
        story.config = {"dataset_size": 8 * turn}
    return story


def test_an_epoch_that_is_not_logged_is_asked_for() -> None:
    found = ask(rule, dropped(logged="").run(), EventKind.DROP)
    assert silent(found)
    assert any("size of the data set" in need for need in found.missing)


@pytest.mark.parametrize("values", [np.full(1500, np.nan), np.zeros(1500), np.full(1500, 7.0)])
def test_odd_epochs(values: np.ndarray) -> None:
    story = dropped(logged="")
    story.more["epoch"] = values
    assert silent(ask(rule, story.run(), EventKind.DROP))


def test_a_drop_within_an_epoch_is_excluded() -> None:
    assert ask(rule, dropped(turn=AT - 100).run(), EventKind.DROP).excluded
    assert ask(rule, dropped(turn=AT - 100, logged="samples").run(), EventKind.DROP).excluded


def test_a_spike_is_no_drop() -> None:
    assert silent(ask(rule, dropped().run(), EventKind.SPIKE))


@pytest.mark.parametrize("logged", ["epoch", "samples"])
def test_a_drop_at_the_turn(logged: str) -> None:
    found = ask(rule, dropped(logged=logged).run(), EventKind.DROP)
    assert holds(found)
    assert str(AT) in found.supporting[0].text or "7,200 samples" in found.supporting[0].text


def test_a_held_out_loss_that_stays_counts_further() -> None:
    story = dropped()
    plain = ask(rule, story.run(), EventKind.DROP)
    story.more["val_loss"] = 2.2 * np.exp(0.01 * np.random.default_rng(1).normal(size=story.points))
    assert ask(rule, story.run(), EventKind.DROP).log_odds > plain.log_odds
