"""Decay in the wrong place: a shrinking embedding, a growing head, stationary norms, another group, not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, silent

from forensics.causes.optimization import weight_decay_misapplied as rule
from forensics.model import EventKind


def group(name: str, factor: float, *, grad: float = 1.0) -> Story:
    story = Story()
    rise = np.clip(np.arange(story.points) - (AT - 500), 0, 500) / 500
    story.more[name] = 50 * np.exp(0.002 * np.random.default_rng(1).normal(size=story.points)) * factor**rise
    story.grad = story.grad * grad**rise
    return story


def test_a_shrinking_embedding_with_a_growing_gradient() -> None:
    found = ask(rule, group("param_norm/embed", 0.5, grad=4).run(), EventKind.DRIFT)
    assert holds(found)
    assert len(found.supporting) == 2


def test_a_growing_head_without_decay() -> None:
    story = group("param_norm/lm_head", 2)
    plain = ask(rule, story.run(), EventKind.DRIFT)
    story.config["weight_decay"] = 0.0
    assert ask(rule, story.run(), EventKind.DRIFT).log_odds == plain.log_odds + 1


def test_stationary_norms_and_other_groups_are_excluded() -> None:
    assert ask(rule, group("param_norm/embed", 1.0).run(), EventKind.DRIFT).excluded
    assert ask(rule, group("param_norm/mlp", 0.5).run(), EventKind.DRIFT).excluded


def test_missing_norms_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.DRIFT)
    assert silent(found)
    assert any("parameter group" in need for need in found.missing)
