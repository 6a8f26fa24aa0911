"""A learning rate of nothing: in mid-run, at the end of a schedule, and not logged."""

from __future__ import annotations

from cause_runs import Story, bad_batch, examine, holds, signals, silent

from forensics.causes.optimization import lr_too_low_or_zero as rule


def test_a_rate_of_zero_in_mid_run() -> None:
    story = Story()
    story.lr[900:] = 0
    found = examine(rule, story.run())
    assert holds(found)
    assert signals(found.supporting) >= {"lr"}
    assert "900" in found.remedy


def test_a_schedule_that_ends_at_zero_is_excluded() -> None:
    story = bad_batch()
    story.lr[-3:] = 0
    assert examine(rule, story.run()).excluded


def test_another_event_of_the_run_is_excluded() -> None:
    story = bad_batch(500)
    story.lr[1200:] = 0
    assert examine(rule, story.run(), near=500).excluded


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, bad_batch().run("lr"))
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
