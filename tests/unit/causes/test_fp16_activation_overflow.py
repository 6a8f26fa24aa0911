"""Overflow in the forward pass: huge activations, small ones, another precision, activations that are not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import Story, bad_batch, examine, holds, nan_loss, silent

from forensics.causes.precision import fp16_activation_overflow as rule


def hot(top: float, dtype: str = "fp16") -> Story:
    story = nan_loss(5)
    story.more["act_max"] = np.geomspace(10, top, story.points)
    story.config["dtype"] = dtype
    return story


def test_activations_near_the_end_of_float16() -> None:
    found = examine(rule, hot(5e7).run())
    assert holds(found)
    assert any("65,504" in e.text for e in found.supporting)


def test_small_activations_and_other_precisions_are_excluded() -> None:
    assert examine(rule, hot(100.0).run()).excluded
    assert examine(rule, hot(5e7, "bf16").run()).excluded


def test_a_spike_without_anything_non_finite_is_not_its_matter() -> None:
    story = hot(5e7)
    story.loss = bad_batch().loss
    assert silent(examine(rule, story.run()))


def test_missing_activations_are_asked_for() -> None:
    found = examine(rule, nan_loss().run())
    assert silent(found)
    assert any("activation" in need for need in found.missing)
