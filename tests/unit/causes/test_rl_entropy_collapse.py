"""Entropy: collapsed on a plateau of the reward, collapsed while it rises, stable, not logged."""

from __future__ import annotations

from cause_events import ask
from cause_runs import Story, holds, signals, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_entropy_collapse as rule
from forensics.model import EventKind


def collapsed() -> RlStory:
    story = RlStory()
    story.more["entropy"] = story.more["entropy"] * story.grow(0.05)
    story.more["reward_std"] = 0.3 * story.wiggle(0.05) * story.grow(0.2)
    return story


def test_entropy_died_out_on_a_plateau() -> None:
    found = ask(rule, collapsed().run(), EventKind.PLATEAU)
    assert holds(found)
    assert {"entropy", "reward"} <= signals(found.supporting)
    assert any("spread" in e.text for e in found.supporting)


def test_a_rising_reward_speaks_against_it() -> None:
    story = collapsed()
    story.more["reward"] = story.more["reward"] * story.grow(3)
    assert "reward" in signals(ask(rule, story.run(), EventKind.PLATEAU).against)


def test_a_stable_entropy_excludes_it() -> None:
    assert ask(rule, RlStory().run(), EventKind.PLATEAU).excluded


def test_a_missing_entropy_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("entropy" in need for need in found.missing)
