"""Too large a start: gradients, activations by depth, the first loss; an ordinary start, a late event, nothing logged."""

from __future__ import annotations

import math

import numpy as np
from cause_runs import Story, bad_batch, early, examine, holds, signals, silent

from forensics.causes.architecture import init_scale_too_large as rule


def started(per_layer: float, burst: float = 1.0) -> Story:
    story = early(warmup=100, at=25)
    away = np.arange(story.points)
    story.grad = Story().grad * (1 + (burst - 1) * np.exp(-away / 8)) * story.fade(2, 10, at=25)
    for layer in (0, 4, 8, 12):
        story.more[f"act_rms/layer.{layer}"] = per_layer**layer * np.exp(0.01 * np.random.default_rng(layer).normal(size=story.points))
    story.loss = story.loss * math.log(1000) / float(np.median(story.loss[:3]))
    story.config |= {"vocab_size": 1000, "hidden_size": 8192, "init_std": 0.02}
    return story


def test_huge_first_gradients_and_growth_with_depth() -> None:
    found = examine(rule, started(1.5, burst=200).run(), near=25)
    assert holds(found)
    assert {"grad_norm", "act_rms/layer.0"} <= signals(found.supporting)
    assert any("0.02" in e.text for e in found.supporting)


def test_a_high_first_loss_agrees() -> None:
    story = started(1.5)
    plain = examine(rule, story.run(), near=25).log_odds
    story.loss = story.loss * 1.3
    assert examine(rule, story.run(), near=25).log_odds == plain + 1


def test_an_ordinary_start_is_excluded() -> None:
    assert examine(rule, started(1.0).run(), near=25).excluded


def test_a_late_event_is_not_its_matter() -> None:
    story = bad_batch()
    story.more = started(1.5).more
    assert silent(examine(rule, story.run()))


def test_missing_signals_are_asked_for() -> None:
    found = examine(rule, early(warmup=100, at=25).run("grad_norm"), near=25)
    assert silent(found)
    assert any("by depth" in need for need in found.missing)
