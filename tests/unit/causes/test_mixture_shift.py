"""A shift of the data: a new level with a calm gradient, a brief spike, an upset gradient, losses per source."""

from __future__ import annotations

from cause_runs import Story, bad_batch, examine, holds, lr_jump, new_data, signals, thrown_off

from forensics.causes.data import mixture_shift as rule


def test_a_new_level_with_a_calm_gradient() -> None:
    found = examine(rule, new_data().run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_a_brief_spike_is_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_an_upset_gradient_speaks_against_it() -> None:
    found = examine(rule, thrown_off(surge=5, length=60).run())
    assert "grad_norm" in signals(found.against)
    assert found.log_odds < examine(rule, new_data().run()).log_odds


def test_a_jump_of_the_rate_speaks_against_it() -> None:
    assert not holds(examine(rule, lr_jump().run()))


def test_missing_losses_per_source_are_asked_for() -> None:
    assert any("per data source" in need for need in examine(rule, new_data().run()).missing)
    story = new_data()
    story.more["loss_code"] = story.loss.copy()
    assert not any("per data source" in need for need in examine(rule, story.run()).missing)


def test_a_loss_that_fell_at_once_is_a_weak_sign() -> None:
    story = Story()
    story.loss = story.loss * story.step_to(0.6)
    assert 0 < examine(rule, story.run()).log_odds <= 1
