"""Calibration of the loss scale: the search at the start, a burst in mid-run, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import Story, examine, falling_scale, holds, signals, silent

from forensics.causes.precision import scale_calibration_skips as rule


def searching() -> Story:
    story = Story()
    scale = np.full(story.points, 65536.0)
    scale[:17] = 2.0 ** (32 - np.arange(17))
    story.more["loss_scale"] = scale
    return story


def test_the_search_at_the_start() -> None:
    found = examine(rule, searching().run(), near=1)
    assert holds(found)
    assert signals(found.supporting) == {"loss_scale"}


def test_a_burst_in_mid_run_is_excluded() -> None:
    assert examine(rule, falling_scale(6, recovers=True).run()).excluded


def test_without_a_loss_scale_it_is_silent() -> None:
    story = searching()
    story.loss[5] *= 50
    assert silent(examine(rule, story.run("loss_scale"), near=5))


def test_a_missing_loss_scale_of_a_float16_run_is_asked_for() -> None:
    story = searching()
    story.loss[5] *= 50
    story.config = {"fp16": True}
    found = examine(rule, story.run("loss_scale"), near=5)
    assert any("loss scale" in need for need in found.missing)
