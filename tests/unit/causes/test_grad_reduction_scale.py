"""A wrongly scaled gradient: a constant factor, a surge with the loss, a small factor, a norm that is not logged."""

from __future__ import annotations

from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent, thrown_off

from forensics.causes.resume import grad_reduction_scale as rule


def scaled(factor: float, steps: int = 6) -> Story:
    story = Story()
    story.grad = story.grad * story.step_to(factor, until=AT + steps)
    return story


def test_a_constant_factor_for_some_steps() -> None:
    found = examine(rule, scaled(32).run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)
    assert any("per rank" in need for need in found.missing)


def test_growth_is_not_a_constant_factor() -> None:
    story = scaled(200)
    story.grad[AT : AT + 5] /= [64, 16, 8, 4, 2]
    assert examine(rule, story.run()).log_odds < examine(rule, scaled(200).run()).log_odds


def test_a_loss_that_moved_at_the_same_step_is_excluded() -> None:
    assert silent(examine(rule, thrown_off(surge=60).run()))


def test_a_small_factor_is_not_its_business() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_without_a_gradient_norm_it_is_silent() -> None:
    assert silent(examine(rule, bad_batch().run("grad_norm")))
