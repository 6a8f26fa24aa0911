"""A wrong divisor: one factor for loss and gradient that stays; two factors, a factor that is learned away, no gradient norm."""

from __future__ import annotations

from cause_runs import Story, bad_batch, examine, holds, new_data, silent

from forensics.causes.resume import grad_accum_normalisation as rule


def undivided(loss: float, grad: float) -> Story:
    story = Story()
    story.loss = story.loss * story.step_to(loss)
    story.grad = story.grad * story.step_to(grad)
    return story


def test_a_spike_is_not_its_business() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_two_factors_exclude_it() -> None:
    assert "not one factor" in (examine(rule, undivided(4, 1.5).run()).excluded or "")


def test_new_data_leave_the_gradient_calm() -> None:
    assert silent(examine(rule, new_data().run()))


def test_a_factor_that_is_learned_away_is_little_evidence() -> None:
    story = Story()
    story.loss = story.loss * story.fade(3, 12)
    story.grad = story.grad * story.fade(3, 12)
    assert examine(rule, story.run()).log_odds < examine(rule, undivided(4, 4).run()).log_odds


def test_without_the_gradient_norm_it_says_nothing() -> None:
    found = examine(rule, undivided(4, 4).run("grad_norm"))
    assert silent(found)
    assert found.missing


def test_one_factor_for_both_upwards_and_downwards() -> None:
    for factor in (4.0, 0.25):
        found = examine(rule, undivided(factor, factor).run())
        assert holds(found)
        assert "stayed" in found.supporting[0].text


def test_the_factor_of_the_accumulation_speaks_for_it() -> None:
    story = undivided(4, 4)
    plain = examine(rule, story.run()).log_odds
    story.config["gradient_accumulation_steps"] = 4
    assert examine(rule, story.run()).log_odds > plain
