"""A doubling of the loss scale before the event: taken back twice, taken back once, long before, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent, thrown_off

from forensics.causes.precision import scale_growth_trigger as rule


def doubled(at: int, halvings: int) -> Story:
    story = thrown_off()
    scale = np.full(story.points, 32768.0)
    scale[at:] = 65536.0
    scale[at + 5 :] = 65536.0 / 2.0**halvings
    story.more["loss_scale"] = scale
    return story


def test_a_doubling_that_was_taken_back_twice() -> None:
    found = examine(rule, doubled(AT - 4, 3).run())
    assert holds(found)
    assert {"loss_scale", "loss"} <= signals(found.supporting)
    assert "32768" in found.remedy


def test_one_halving_is_the_scaler_at_work() -> None:
    assert examine(rule, doubled(AT - 4, 1).run()).excluded


def test_a_doubling_long_before_is_excluded() -> None:
    assert examine(rule, doubled(AT - 200, 3).run()).excluded


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)
