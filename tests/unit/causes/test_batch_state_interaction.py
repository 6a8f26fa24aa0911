"""A batch that met a fragile state: a lead of the gradient, the same batch again, and what only a replay tells."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, lr_jump, signals

from forensics.causes.data import batch_state_interaction as rule


def led() -> Story:
    story = Story()
    story.grad = story.grad * story.fade(4, 15, at=AT - 4)
    story.loss = story.loss * story.fade(0.7, 15)
    return story


def test_a_gradient_that_left_its_level_before_the_loss() -> None:
    found = examine(rule, led().run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_a_batch_that_comes_back_speaks_against_it() -> None:
    found = examine(rule, bad_batch(400, 700, 900).run())
    assert "batch_id" in signals(found.against)
    assert found.log_odds < examine(rule, led().run()).log_odds


def test_a_jump_of_the_rate_speaks_against_it() -> None:
    assert "lr" in signals(examine(rule, lr_jump().run()).against)


def test_without_a_gradient_norm_no_lead_is_claimed() -> None:
    found = examine(rule, led().run("grad_norm"))
    assert not any(e.signal == "grad_norm" for e in found.supporting)
    assert any("replay" in need for need in found.missing)


def test_a_batch_that_does_no_harm_elsewhere_met_another_state() -> None:
    story = led()
    plain = examine(rule, story.run())
    story.batch = np.arange(story.points, dtype=np.float64) % 150
    found = examine(rule, story.run())
    assert any("no harm" in e.text for e in found.supporting)
    assert found.log_odds > plain.log_odds
    story.loss[story.batch == AT % 150] *= 1.08
    assert any("bad at its other steps too" in e.text for e in examine(rule, story.run()).against)
