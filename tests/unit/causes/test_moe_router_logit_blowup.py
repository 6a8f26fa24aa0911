"""Router logits: growing, small, steady, not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, silent, thrown_off

from forensics.causes.architecture import moe_router_logit_blowup as rule


def logits(start: float, factor: float) -> Story:
    story = thrown_off()
    t = np.arange(story.points)
    noise = np.exp(0.02 * np.random.default_rng(1).normal(size=story.points))
    story.more["router_logits_max"] = start * noise * factor ** (np.clip(t - (AT - 500), 0, 500) / 500)
    return story


def test_logits_that_grew_before_the_event() -> None:
    found = examine(rule, logits(8, 10).run())
    assert holds(found)
    assert found.supporting[0].signal == "router_logits_max"


def test_small_and_steady_ones_are_excluded() -> None:
    assert examine(rule, logits(1, 4).run()).excluded
    assert examine(rule, logits(40, 1).run()).excluded


def test_missing_logits_are_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("router logit" in need for need in found.missing)
