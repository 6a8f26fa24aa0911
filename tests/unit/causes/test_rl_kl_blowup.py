"""KL leaves: a jump with a crash of the reward, a flat KL, a critic that moved first, no KL."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, signals, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_kl_blowup as rule
from forensics.model import EventKind


def blowup() -> RlStory:
    story = RlStory()
    story.more["kl"] = story.more["kl"] * story.step_to(20, at=AT - 6)
    story.more["clipfrac"] = np.where(np.arange(story.points) >= AT - 6, 0.5, 0.1)
    story.crash()
    return story


def test_a_jump_of_kl_before_the_reward_falls() -> None:
    found = ask(rule, blowup().run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert {"kl", "clipfrac", "reward"} <= signals(found.supporting)


def test_slow_growth_counts_as_well() -> None:
    story = RlStory()
    story.more["kl"] = story.more["kl"] * story.grow(4)
    assert holds(ask(rule, story.run(), EventKind.LEVEL_SHIFT))


def test_a_flat_kl_excludes_it() -> None:
    assert ask(rule, RlStory().run(), EventKind.LEVEL_SHIFT).excluded


def test_a_critic_that_moved_first_speaks_against_it() -> None:
    story = blowup()
    story.more["value_loss"] = story.more["value_loss"] * story.step_to(30, at=AT - 10)
    assert "value_loss" in signals(ask(rule, story.run(), EventKind.LEVEL_SHIFT).against)


def test_a_missing_kl_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("KL" in need for need in found.missing)
