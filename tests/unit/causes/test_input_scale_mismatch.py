"""Inputs on another scale: the first layer jumps, it does not, another layer only, nothing logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, new_data, silent

from forensics.causes.data import input_scale_mismatch as rule


def layers(first: float, later: float = 1.0) -> Story:
    story = new_data()
    noise = np.exp(0.01 * np.random.default_rng(8).normal(size=story.points))
    story.more |= {"act_rms/layer_0": 2 * noise * story.step_to(first), "act_rms/layer_9": 5 * noise * story.step_to(later)}
    return story


def test_the_first_layer_jumps_with_the_loss() -> None:
    found = examine(rule, layers(0.5).run())
    assert holds(found)
    assert "layer_0" in found.supporting[0].text
    assert found.supporting[0].step == AT


def test_an_unchanged_first_layer_excludes_it() -> None:
    assert examine(rule, layers(1.0, 3.0).run()).excluded


def test_a_missing_first_layer_is_asked_for() -> None:
    story = layers(0.5)
    del story.more["act_rms/layer_0"]
    for run in (story.run(), new_data().run()):
        found = examine(rule, run)
        assert silent(found)
        assert any("first layer" in need for need in found.missing)
