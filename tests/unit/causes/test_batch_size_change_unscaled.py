"""A change of the batch size: unscaled, scaled, absent, and not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, noisier, signals

from forensics.causes.optimization import batch_size_change_unscaled as rule


def smaller_batch() -> Story:
    story = noisier(grad=2.0)
    story.more["bs"] = np.where(np.arange(story.points) >= AT, 16.0, 64.0)
    return story


def test_a_smaller_batch_at_the_old_rate() -> None:
    found = examine(rule, smaller_batch().run())
    assert holds(found)
    assert {"bs", "lr"} <= signals(found.supporting)


def test_a_rate_that_followed_speaks_against_it() -> None:
    story = smaller_batch()
    story.lr = story.lr * story.step_to(0.5)
    found = examine(rule, story.run())
    assert "lr" in signals(found.against)
    assert found.log_odds < examine(rule, smaller_batch().run()).log_odds


def test_a_constant_batch_size_is_excluded() -> None:
    story = bad_batch()
    story.more["bs"] = np.full(story.points, 64.0)
    assert examine(rule, story.run()).excluded


def test_a_missing_batch_size_is_asked_for() -> None:
    found = examine(rule, noisier().run())
    assert any("batch size" in need for need in found.missing)
    assert found.log_odds < examine(rule, smaller_batch().run()).log_odds
