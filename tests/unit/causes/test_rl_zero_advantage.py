"""Equal rewards: a spread of zero, a share of equal groups, a normal spread, a spike, no spread."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import holds, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_zero_advantage as rule
from forensics.model import EventKind


def equal(factor: float) -> RlStory:
    story = RlStory()
    story.more["reward_std"] = 0.3 * story.wiggle(0.05) * story.grow(factor)
    story.grad = story.grad * story.grow(factor)
    return story


def test_a_spread_that_is_gone() -> None:
    found = ask(rule, equal(0.01).run(), EventKind.PLATEAU)
    assert holds(found)
    assert len(found.supporting) == 2


def test_a_share_of_groups_with_equal_rewards() -> None:
    story = RlStory()
    story.more["frac_reward_zero_std"] = np.full(story.points, 0.8)
    assert "80%" in ask(rule, story.run(), EventKind.PLATEAU).supporting[0].text
    story.more["frac_reward_zero_std"] = np.full(story.points, 0.1)
    assert ask(rule, story.run(), EventKind.PLATEAU).excluded


def test_a_normal_spread_is_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, equal(1.0).run(), EventKind.PLATEAU).excluded
    assert silent(ask(rule, equal(0.01).run(), EventKind.SPIKE))


def test_a_missing_spread_is_asked_for() -> None:
    found = ask(rule, RlStory().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("spread" in need for need in found.missing)
