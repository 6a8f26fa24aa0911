"""Weights that do not move: a constant norm, updates of zero, weights that move, few digits, a rate of zero, not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, holds, silent

from forensics.causes.optimization import optimizer_not_stepping as rule
from forensics.model import EventKind


def frozen(value: float = 123.456789) -> Story:
    story = Story()
    story.more["param_norm"] = np.full(story.points, value)
    return story


def test_a_norm_that_is_constant_to_the_last_digit() -> None:
    found = ask(rule, frozen().run(), EventKind.PLATEAU)
    assert holds(found)
    assert "123.456789" in found.supporting[0].text


def test_updates_of_exactly_zero() -> None:
    story = Story()
    story.more["update_to_weight"] = np.where(np.arange(story.points) >= AT, 0.0, 1e-3)
    assert holds(ask(rule, story.run(), EventKind.PLATEAU))


def test_weights_that_move_exclude_it() -> None:
    story = frozen()
    story.more["param_norm"] = 100 + np.arange(story.points) / 1000
    assert ask(rule, story.run(), EventKind.PLATEAU).excluded


def test_a_norm_with_few_digits_says_nothing() -> None:
    assert silent(ask(rule, frozen(123.0).run(), EventKind.PLATEAU))


def test_a_rate_of_zero_excludes_it() -> None:
    story = frozen()
    story.lr[AT:] = 0.0
    assert ask(rule, story.run(), EventKind.PLATEAU).excluded


def test_missing_norms_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("checkpoints" in need for need in found.missing)
