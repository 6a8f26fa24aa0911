"""A reward that rises alone: the evaluation falls, stays, follows; a flat reward, no evaluation."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_reward_hacking as rule
from forensics.model import EventKind


def hacked(quality: float) -> RlStory:
    story = RlStory()
    story.more["reward"] = story.more["reward"] * story.grow(2)
    story.more["eval_win_rate"] = 0.5 * story.wiggle(0.01) * story.grow(quality)
    story.more["response_length"] = story.more["response_length"] * story.grow(2)
    return story


def test_the_evaluation_falls_while_the_reward_rises() -> None:
    found = ask(rule, hacked(0.6).run(), EventKind.DRIFT)
    assert holds(found)
    assert "fell" in found.supporting[0].text
    assert ask(rule, hacked(1.0).run(), EventKind.DRIFT).log_odds < found.log_odds


def test_an_evaluation_that_follows_excludes_it() -> None:
    assert ask(rule, hacked(1.6).run(), EventKind.DRIFT).excluded


def test_a_flat_reward_excludes_it() -> None:
    story = hacked(0.6)
    story.more["reward"] = RlStory().more["reward"]
    assert ask(rule, story.run(), EventKind.DRIFT).excluded


def test_missing_evaluations_are_asked_for() -> None:
    for story in (Story(), RlStory()):
        found = ask(rule, story.run(), EventKind.DRIFT)
        assert silent(found)
        assert any("held-out" in need for need in found.missing)
    story = hacked(0.6)
    story.more["eval_win_rate"][np.arange(story.points) < AT - 3] = np.nan
    assert any("evaluations" in need for need in ask(rule, story.run(), EventKind.DRIFT).missing)
