"""Exploding gradients: growth over several steps, one step with its batch, a norm that is not logged."""

from __future__ import annotations

from cause_runs import bad_batch, examine, explosion, holds, lr_jump, signals, silent

from forensics.causes.architecture import gradient_explosion_depth as rule


def test_a_norm_that_doubles_step_after_step() -> None:
    found = examine(rule, explosion().run(), near=896)
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_a_jump_of_the_rate_makes_it_weaker() -> None:
    story = explosion()
    story.lr = story.lr * story.step_to(10, at=895, until=960)
    assert examine(rule, story.run(), near=896).log_odds < examine(rule, explosion().run(), near=896).log_odds


def test_one_step_together_with_its_batch_is_weaker() -> None:
    story = bad_batch()
    story.grad[900] *= 10
    assert examine(rule, story.run()).log_odds < examine(rule, explosion().run(), near=896).log_odds


def test_no_surge_is_excluded() -> None:
    assert examine(rule, lr_jump().run()).excluded


def test_a_missing_gradient_norm_is_asked_for() -> None:
    found = examine(rule, explosion().run("grad_norm"))
    assert silent(found)
    assert any("gradient norm" in need for need in found.missing)
