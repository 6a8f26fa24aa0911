"""NaN in the input: out of nothing, after growth, after overflow, and what no log shows."""

from __future__ import annotations

from cause_runs import bad_batch, examine, falling_scale, grown_nan, holds, nan_loss, signals, silent

from forensics.causes.data import nan_in_input as rule


def test_a_nan_out_of_nothing() -> None:
    found = examine(rule, nan_loss().run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert "900" in found.remedy


def test_a_nan_that_the_loss_grew_into_is_excluded() -> None:
    assert examine(rule, grown_nan().run(), near=880, within=60).excluded


def test_an_overflow_of_scaled_gradients_is_not_its_business() -> None:
    story = falling_scale(8, recovers=False)
    story.loss[902:904] = float("nan")
    assert silent(examine(rule, story.run()))


def test_a_finite_spike_is_not_its_business() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_the_inputs_are_asked_for_also_without_a_gradient_norm() -> None:
    found = examine(rule, nan_loss().run("grad_norm"))
    assert any("inputs" in need for need in found.missing)
    assert holds(found)
