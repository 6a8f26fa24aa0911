"""A slow rise late in training: with the gradient, in the warmup, and without a logged rate."""

from __future__ import annotations

from cause_runs import drifting, early, examine, holds, signals, silent

from forensics.causes.optimization import lr_decay_too_slow as rule


def test_a_drift_with_the_gradient_norm() -> None:
    found = examine(rule, drifting().run(), near=1000, within=150)
    assert holds(found)
    assert {"loss", "lr"} <= signals(found.supporting)
    assert found.missing


def test_a_flat_gradient_makes_it_weaker() -> None:
    moved = examine(rule, drifting().run(), near=1000, within=150)
    flat = examine(rule, drifting(grad=0.0).run(), near=1000, within=150)
    assert flat.log_odds < moved.log_odds


def test_a_rise_in_the_warmup_is_not_its_business() -> None:
    assert silent(examine(rule, early(warmup=100).run(), near=40))


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, drifting().run("lr"), near=1000, within=150)
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
