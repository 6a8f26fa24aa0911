"""The edge of stability: a swing, a spike far from any rise of the rate, and what is never logged."""

from __future__ import annotations

from cause_runs import bad_batch, early, examine, holds, signals, silent, swinging

from forensics.causes.optimization import sharpness_edge as rule


def test_a_swinging_loss() -> None:
    found = examine(rule, swinging().run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert any("curvature" in need for need in found.missing)


def test_a_rise_during_warmup_is_a_hint_at_most() -> None:
    assert examine(rule, early(warmup=100).run(), near=40).log_odds < examine(rule, swinging().run()).log_odds


def test_a_spike_in_the_decay_is_silent() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_without_a_learning_rate_a_rise_says_nothing() -> None:
    assert silent(examine(rule, early(warmup=100).run("lr"), near=40))
