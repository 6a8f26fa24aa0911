"""The critic diverges: before the event, after it, calm, KL first, no value loss."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, signals, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_value_blowup as rule
from forensics.model import EventKind


def critic(lead: int) -> RlStory:
    story = RlStory()
    story.more["value_loss"] = story.more["value_loss"] * story.step_to(30, at=AT - lead)
    story.more["explained_variance"] = np.where(np.arange(story.points) >= AT - lead, -0.5, 0.8)
    return story


def test_a_critic_that_diverges_first() -> None:
    found = ask(rule, critic(6).run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert "6 steps before" in found.supporting[0].text
    assert len(found.supporting) == 2


def test_a_calm_critic_or_one_that_follows_is_excluded() -> None:
    assert ask(rule, RlStory().run(), EventKind.LEVEL_SHIFT).excluded
    assert ask(rule, critic(-8).run(), EventKind.LEVEL_SHIFT).excluded


def test_a_kl_that_moved_first_speaks_against_it() -> None:
    story = critic(4)
    story.more["kl"] = story.more["kl"] * story.step_to(30, at=AT - 10)
    assert "kl" in signals(ask(rule, story.run(), EventKind.LEVEL_SHIFT).against)


def test_a_missing_value_loss_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("value loss" in need for need in found.missing)
