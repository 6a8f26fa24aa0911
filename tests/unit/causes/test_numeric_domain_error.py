"""An operation out of its domain: a NaN out of nothing, one that grew, one of the scaler, and what no log shows."""

from __future__ import annotations

from cause_runs import bad_batch, examine, falling_scale, grown_nan, holds, nan_loss, signals, silent

from forensics.causes.data import nan_in_input
from forensics.causes.precision import numeric_domain_error as rule


def test_a_nan_out_of_nothing_is_possible() -> None:
    found = examine(rule, nan_loss().run())
    assert holds(found)
    assert "loss" in signals(found.supporting)


def test_a_nan_in_the_data_is_likelier() -> None:
    run = nan_loss().run()
    assert examine(rule, run).log_odds < examine(nan_in_input, run).log_odds


def test_growth_before_the_nan_excludes_it() -> None:
    assert examine(rule, grown_nan().run(), near=880, within=60).excluded


def test_a_burst_of_halvings_excludes_it() -> None:
    story = falling_scale(8, recovers=False)
    story.loss[902:904] = float("nan")
    assert silent(examine(rule, story.run()))


def test_a_finite_spike_is_not_its_business() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_the_first_bad_module_is_asked_for() -> None:
    assert any("non-finite module" in need for need in examine(rule, nan_loss().run()).missing)
