"""Clipping at most steps: a drift under a tight clip, a loose clip, a norm logged after clipping, no threshold."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, silent

from forensics.causes.optimization import grad_clip_chronic as rule
from forensics.model import EventKind


def clipped_at(threshold: float) -> Story:
    story = Story()
    story.config["max_grad_norm"] = threshold
    return story


def test_most_gradients_are_longer_than_the_clip() -> None:
    found = ask(rule, clipped_at(0.3).run(), EventKind.PLATEAU)
    assert found.log_odds >= 2
    assert found.supporting[0].signal == "grad_norm"
    assert ask(rule, clipped_at(0.3).run(), EventKind.DRIFT).log_odds == 1


def test_a_logged_threshold_counts_too() -> None:
    story = Story()
    story.more["clip_value"] = np.full(story.points, 0.3)
    assert ask(rule, story.run(), EventKind.PLATEAU).supporting


def test_a_loose_clip_is_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, clipped_at(0.6).run(), EventKind.PLATEAU).excluded
    assert silent(ask(rule, clipped_at(0.3).run(), EventKind.SPIKE))


def test_a_norm_logged_after_clipping_says_nothing() -> None:
    story = clipped_at(0.3)
    story.grad = np.minimum(story.grad, 0.3)
    found = ask(rule, story.run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("before clipping" in need for need in found.missing)


def test_a_missing_threshold_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("threshold" in need for need in found.missing)
