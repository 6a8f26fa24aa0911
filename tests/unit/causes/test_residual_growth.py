"""Growing activations: before the event, flat ones, growth that comes after, not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent, thrown_off

from forensics.causes.architecture import residual_growth as rule


def growing(factor: float) -> Story:
    story = thrown_off()
    t = np.arange(story.points)
    noise = np.exp(0.02 * np.random.default_rng(1).normal(size=story.points))
    story.more["act_rms/layer_11"] = 2 * noise * factor ** (np.clip(t - (AT - 500), 0, 500) / 500)
    story.more["act_rms/layer_0"] = 1 * noise
    return story


def test_activations_that_grew_before_the_event() -> None:
    found = examine(rule, growing(8).run())
    assert holds(found)
    assert "layer_11" in found.supporting[0].text


def test_flat_or_slowly_growing_ones_are_excluded() -> None:
    assert examine(rule, growing(1).run()).excluded
    assert examine(rule, growing(1.4).run()).excluded


def test_growth_after_the_event_is_excluded() -> None:
    story = bad_batch(300)
    story.more = growing(8).more
    assert examine(rule, story.run(), near=300).excluded


def test_missing_activations_are_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("activation" in need for need in found.missing)
    assert signals(found.supporting) == set()
