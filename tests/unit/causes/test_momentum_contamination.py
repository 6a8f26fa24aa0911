"""Contaminated moments: a far surge before the loss, a small one, and no gradient norm."""

from __future__ import annotations

from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent

from forensics.causes.optimization import momentum_contamination as rule


def contaminated() -> Story:
    story = Story()
    story.grad[AT] *= 100
    story.loss = story.loss * story.fade(0.5, 60, at=AT + 5)
    return story


def test_a_hundredfold_gradient_before_the_loss_rose() -> None:
    found = examine(rule, contaminated().run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_an_ordinary_spike_of_the_gradient_is_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_a_missing_gradient_norm_is_asked_for() -> None:
    found = examine(rule, contaminated().run("grad_norm"), near=AT + 5)
    assert silent(found)
    assert any("gradient norm" in need for need in found.missing)
