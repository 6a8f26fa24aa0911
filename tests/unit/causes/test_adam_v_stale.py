"""A stale second moment: a quick recovery, a bad batch, plain SGD, and what is rarely logged."""

from __future__ import annotations

from cause_runs import bad_batch, examine, holds, lr_jump, signals, silent, thrown_off

from forensics.causes.optimization import adam_v_stale as rule


def test_loss_and_gradient_are_up_together_and_beta2_is_slow() -> None:
    story = thrown_off(length=12)
    story.config = {"optimizer": "AdamW", "adam_beta2": 0.999}
    found = examine(rule, story.run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_a_fast_beta2_makes_it_weaker() -> None:
    slow, fast = thrown_off(length=12), thrown_off(length=12)
    slow.config, fast.config = {"adam_beta2": 0.999}, {"adam_beta2": 0.95}
    assert examine(rule, fast.run()).log_odds < examine(rule, slow.run()).log_odds


def test_a_spike_that_ends_with_its_batch_is_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_an_optimizer_without_second_moments_is_excluded() -> None:
    story = thrown_off()
    story.config = {"optimizer": "SGD"}
    assert examine(rule, story.run()).excluded


def test_a_jump_of_the_rate_speaks_against_it() -> None:
    assert "lr" in signals(examine(rule, lr_jump().run()).against)


def test_the_update_rms_is_asked_for_and_a_missing_norm_leaves_little() -> None:
    found = examine(rule, thrown_off().run("grad_norm"))
    assert any("update RMS" in need for need in found.missing)
    assert silent(found) or not holds(found)
