"""Silent corruption: a far surge without a reason, growth, a bad batch, a jump of the rate, a norm that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, bad_batch, examine, explosion, holds, lr_jump, signals, silent, swinging, thrown_off

from forensics.causes.hardware import sdc_transient as rule


def test_a_far_surge_that_has_to_be_relearned() -> None:
    found = examine(rule, thrown_off(surge=60).run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)
    assert any("per rank" in need for need in found.missing)


def test_growth_over_steps_speaks_against_it() -> None:
    found = examine(rule, explosion().run(), near=896)
    assert "grad_norm" in signals(found.against)
    assert not holds(found)


def test_a_spike_that_ends_with_its_batch_speaks_against_it() -> None:
    assert not holds(examine(rule, bad_batch().run()))


def test_a_jump_of_the_rate_is_excluded() -> None:
    assert examine(rule, lr_jump().run()).excluded


def test_a_slow_change_is_not_an_error_of_one_step() -> None:
    assert silent(examine(rule, swinging().run()))


def test_a_missing_gradient_norm_is_asked_for() -> None:
    found = examine(rule, thrown_off(surge=60).run("grad_norm"))
    assert silent(found)
    assert any("gradient norm" in need for need in found.missing)


def test_a_gradient_no_larger_than_the_loss_explains_is_no_sign_of_it() -> None:
    large_errors = thrown_off(height=60, surge=60)
    assert examine(rule, large_errors.run()).log_odds < examine(rule, thrown_off(surge=60).run()).log_odds


def test_one_rank_alone_names_the_device() -> None:
    story = thrown_off(surge=60)
    rng = np.random.default_rng(3)
    for rank in range(4):
        story.more[f"loss_rank{rank}"] = 2 * np.exp(0.03 * rng.normal(size=story.points))
    together = examine(rule, story.run())
    assert any("no rank stands out" in e.text for e in together.against)
    story.more["loss_rank1"][AT] *= 5
    alone = examine(rule, story.run())
    assert any("loss_rank1 stands alone" in e.text for e in alone.supporting)
    assert alone.log_odds > together.log_odds
