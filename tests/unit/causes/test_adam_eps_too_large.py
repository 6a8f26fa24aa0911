"""Epsilon against gradients: as large as they are, far below, between, another optimizer, no configuration."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, silent

from forensics.causes.optimization import adam_eps_too_large as rule
from forensics.model import EventKind


def configured(eps: float, **more: object) -> Story:
    story = Story()
    story.config |= {"adam_epsilon": eps, "n_params": 1e8, "optimizer": "adamw", **more}
    return story


def test_an_epsilon_as_large_as_the_gradients() -> None:
    story = configured(1e-5)
    story.more["update_to_weight"] = np.full(story.points, 1e-6)
    found = ask(rule, story.run(), EventKind.PLATEAU)
    assert holds(found)
    assert len(found.supporting) == 2


def test_a_tiny_epsilon_is_excluded() -> None:
    assert ask(rule, configured(1e-8).run(), EventKind.PLATEAU).excluded


def test_between_the_two_and_with_other_optimizers_it_is_silent() -> None:
    assert silent(ask(rule, configured(2e-6).run(), EventKind.PLATEAU))
    assert silent(ask(rule, configured(1e-5, optimizer="sgd").run(), EventKind.PLATEAU))


def test_a_missing_configuration_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("epsilon" in need for need in found.missing)
