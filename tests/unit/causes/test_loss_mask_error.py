"""A wrong loss mask: noisier with a larger gradient, a batch size that changed, a NaN that heals, counts not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, nan_loss, noisier, signals, silent

from forensics.causes.data import loss_mask_error as rule


def test_a_noisier_loss_with_a_larger_gradient() -> None:
    found = examine(rule, noisier().run())
    assert holds(found)
    assert {"loss", "grad_norm"} <= signals(found.supporting)


def test_a_change_of_the_batch_size_explains_it_better() -> None:
    story = noisier()
    story.more["bs"] = np.where(np.arange(story.points) >= AT, 16.0, 64.0)
    found = examine(rule, story.run())
    assert "bs" in signals(found.against)
    assert found.log_odds < examine(rule, noisier().run()).log_odds


def test_a_nan_that_heals_is_possible() -> None:
    assert "loss" in signals(examine(rule, nan_loss().run()).supporting)


def test_a_spike_is_not_its_business() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_missing_token_counts_are_asked_for_and_logged_ones_are_not() -> None:
    assert any("target tokens" in need for need in examine(rule, noisier().run()).missing)
    story = noisier()
    story.more["tok_valid"] = np.full(story.points, 4096.0)
    assert not any("target tokens" in need for need in examine(rule, story.run()).missing)


def test_a_loss_that_fell_and_a_gradient_that_fell_less() -> None:
    story = Story()
    story.loss = story.loss * story.step_to(0.1)
    story.grad = story.grad * story.step_to(0.35)
    assert holds(examine(rule, story.run()))


def test_a_fall_by_one_factor_is_another_unit_and_a_rising_gradient_contradicts() -> None:
    story = Story()
    story.loss = story.loss * story.step_to(0.25)
    same, more = Story(), Story()
    same.loss, more.loss = story.loss, story.loss
    same.grad = same.grad * same.step_to(0.25)
    more.grad = more.grad * more.step_to(1.6)
    assert examine(rule, same.run()).log_odds <= 1
    assert examine(rule, more.run()).log_odds < 0


def sparse(noise: float) -> Story:
    """A short log in which from one point on the gradient norm is four times as large and the loss noisier."""
    story = Story(points=100, warmup=5)
    t = np.arange(100)
    story.loss = 2.0 * np.exp(np.where(t < 50, 0.03, noise) * np.random.default_rng(2).normal(size=100))
    story.grad = story.grad * np.where(t >= 50, 4.0, 1.0)
    return story


def test_on_a_short_log_the_new_level_of_the_gradient_is_the_event() -> None:
    found = examine(rule, sparse(0.15).run(), near=50)
    assert holds(found)
    assert {"loss", "grad_norm"} <= signals(found.supporting)


def test_a_new_level_of_the_gradient_under_the_same_noise_is_not_its_business() -> None:
    assert silent(examine(rule, sparse(0.03).run(), near=50))
