"""Responses at the limit: growing and cut, growing but not cut, at the configured limit, stable, not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_length_runaway as rule
from forensics.model import EventKind


def longer(factor: float = 4.0) -> RlStory:
    story = RlStory()
    story.more["response_length"] = story.more["response_length"] * story.grow(factor)
    return story


def test_responses_grow_and_are_cut() -> None:
    story = longer()
    story.more["completions/clipped_ratio"] = np.full(story.points, 0.6)
    found = ask(rule, story.run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert "60%" in found.supporting[1].text


def test_the_configured_limit_stands_for_the_share() -> None:
    story = longer()
    story.config["max_completion_length"] = 820
    assert holds(ask(rule, story.run(), EventKind.LEVEL_SHIFT))


def test_growth_that_is_not_cut_speaks_against_it() -> None:
    story = longer()
    story.more["completions/clipped_ratio"] = np.full(story.points, 0.02)
    assert ask(rule, story.run(), EventKind.LEVEL_SHIFT).log_odds <= 0


def test_a_stable_length_is_excluded() -> None:
    assert ask(rule, RlStory().run(), EventKind.LEVEL_SHIFT).excluded


def test_a_missing_length_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("length of responses" in need for need in found.missing)
