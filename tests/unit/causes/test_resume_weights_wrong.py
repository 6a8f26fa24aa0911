"""Wrong weights: off at the first step after a resume, right at first, back at once, no mark of a resume."""

from __future__ import annotations

from cause_runs import AT, bad_batch, examine, holds, lr_jump, new_data, signals, thrown_off

from forensics.causes.resume import resume_optimizer_lost
from forensics.causes.resume import resume_weights_wrong as rule


def test_a_loss_that_is_off_at_the_first_step() -> None:
    story = thrown_off()
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert found.log_odds > examine(resume_optimizer_lost, story.run()).log_odds


def test_first_losses_that_are_right_point_at_the_optimizer() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run())
    assert "loss" in signals(found.against)
    assert found.log_odds < examine(resume_optimizer_lost, story.run()).log_odds


def test_a_loss_that_is_back_at_once_is_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_a_jump_of_the_rate_is_excluded() -> None:
    assert examine(rule, lr_jump().run()).excluded


def test_a_calm_gradient_speaks_against_it() -> None:
    assert "grad_norm" in signals(examine(rule, new_data().run()).against)


def test_marks_of_a_resume_are_asked_for() -> None:
    assert any("resume" in need for need in examine(rule, thrown_off().run()).missing)


def test_a_level_that_is_never_relearned_speaks_against_it() -> None:
    story = new_data()
    story.grad = story.grad * story.step_to(2.0)
    assert "loss" in signals(examine(rule, story.run()).against)
