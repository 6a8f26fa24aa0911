"""Updates that grow alone: with a flat gradient, with the gradient, with the rate, plain SGD, not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, silent, thrown_off

from forensics.causes.optimization import adam_correlated_updates as rule
from forensics.model import EventKind


def updates(factor: float = 4.0, *, grad: float = 1.0) -> Story:
    story = thrown_off()
    rise = np.clip(np.arange(story.points) - (AT - 500), 0, 500) / 500
    noise = np.exp(0.02 * np.random.default_rng(1).normal(size=story.points))
    story.more["update_to_weight"] = 1e-3 * noise * factor**rise
    story.grad = story.grad * grad**rise
    return story


def test_updates_grow_and_the_gradient_falls() -> None:
    found = ask(rule, updates(grad=0.2).run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert len(found.supporting) == 2


def test_a_gradient_that_grows_too_excludes_it() -> None:
    assert ask(rule, updates(grad=5).run(), EventKind.LEVEL_SHIFT).excluded


def test_steady_updates_and_plain_sgd_are_excluded() -> None:
    assert ask(rule, updates(1.0).run(), EventKind.LEVEL_SHIFT).excluded
    story = updates()
    story.config["optimizer"] = "sgd"
    assert ask(rule, story.run(), EventKind.LEVEL_SHIFT).excluded


def test_a_rising_rate_makes_larger_updates_by_itself() -> None:
    story = updates()
    story.lr = 1e-4 * np.exp(np.arange(story.points) / 500)
    assert silent(ask(rule, story.run(), EventKind.LEVEL_SHIFT))


def test_missing_updates_are_asked_for() -> None:
    found = ask(rule, thrown_off().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("update" in need for need in found.missing)
