"""A lost scheduler state: a new warmup at a resume, without one, a rate that goes on, a rate that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent, thrown_off

from forensics.causes.resume import resume_scheduler_lost as rule


def warmed_again() -> Story:
    story = Story()
    story.lr[AT : AT + 100] = 3e-4 * np.linspace(0.6, 2, 100)
    story.loss = story.loss * story.fade(0.5, 60, at=AT + 15)
    story.grad = story.grad * story.fade(3, 60, at=AT + 15)
    return story


def test_a_new_warmup_at_a_resume() -> None:
    story = warmed_again()
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert holds(found)
    assert "lr" in signals(found.supporting)


def test_without_a_resume_it_is_weaker_and_marks_are_asked_for() -> None:
    story = warmed_again()
    story.resumed_at(AT)
    found = examine(rule, warmed_again().run())
    assert found.log_odds < examine(rule, story.run()).log_odds
    assert any("resume" in need for need in found.missing)


def test_a_continuous_rate_is_excluded() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    assert examine(rule, story.run()).excluded


def test_a_missing_learning_rate_is_asked_for() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run("lr"))
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
