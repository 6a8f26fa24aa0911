"""A loss that is suddenly too good: the held-out loss does not follow, it follows, a small fall, no held-out loss."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent

from forensics.causes.data import target_leak_or_format as rule


def leak(factor: float = 0.5, *, follows: bool = False) -> Story:
    story = Story()
    plain = 2.1 + np.exp(-np.arange(story.points) / 300)
    story.loss = story.loss * story.step_to(factor)
    story.more["val_loss"] = plain * (story.step_to(factor) if follows else 1.0)
    return story


def test_the_training_loss_falls_alone() -> None:
    found = examine(rule, leak().run())
    assert holds(found)
    assert "val_loss" in signals(found.supporting)


def test_a_held_out_loss_that_falls_too_excludes_it() -> None:
    assert examine(rule, leak(follows=True).run()).excluded


def test_a_small_fall_is_excluded() -> None:
    assert examine(rule, leak(0.88).run()).excluded


def test_at_a_resume_it_is_weaker() -> None:
    story = leak()
    story.resumed_at(AT)
    assert examine(rule, story.run()).log_odds < examine(rule, leak().run()).log_odds


def test_a_missing_held_out_loss_is_asked_for() -> None:
    found = examine(rule, leak().run("val_loss"))
    assert silent(found)
    assert any("held-out" in need for need in found.missing)
