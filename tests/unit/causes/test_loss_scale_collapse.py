"""Collapse of the loss scale: to the floor, a burst that recovers, a scale that is not logged."""

from __future__ import annotations

from cause_runs import AT, bad_batch, examine, falling_scale, holds, signals, silent

from forensics.causes.precision import fp16_grad_overflow
from forensics.causes.precision import loss_scale_collapse as rule


def test_a_scale_that_falls_and_stays() -> None:
    found = examine(rule, falling_scale(12, recovers=False).run())
    assert holds(found)
    assert signals(found.supporting) == {"loss_scale"}


def test_it_is_told_from_an_ordinary_overflow() -> None:
    run = falling_scale(12, recovers=False).run()
    assert examine(rule, run).log_odds > examine(fp16_grad_overflow, run).log_odds


def test_a_burst_that_recovers_is_excluded() -> None:
    assert examine(rule, falling_scale(4, recovers=True).run()).excluded


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)


def test_a_scale_that_falls_back_to_where_it_had_been_has_not_collapsed() -> None:
    story = falling_scale(12, recovers=False)
    scale = story.more["loss_scale"]
    scale[:AT] = scale[-1]
    scale[AT - 1] = 65536.0
    assert "loss_scale" in signals(examine(rule, story.run()).against)


def test_a_rate_far_above_the_usual_is_the_deeper_reason() -> None:
    story = falling_scale(12, recovers=False)
    alone = examine(rule, story.run()).log_odds
    story.lr = story.lr * 100
    assert examine(rule, story.run()).log_odds < alone
