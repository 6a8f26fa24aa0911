"""Instability at the end of the warmup: there, elsewhere, and without a logged rate."""

from __future__ import annotations

from cause_runs import early, examine, holds, signals, silent, thrown_off

from forensics.causes.optimization import lr_peak_instability as rule


def test_a_rise_just_after_the_warmup() -> None:
    found = examine(rule, early(warmup=100, at=110).run(), near=110)
    assert holds(found)
    assert "lr" in signals(found.supporting)


def test_events_long_after_it_speak_against_it() -> None:
    alone = examine(rule, early(warmup=100, at=110).run(), near=110)
    story = early(warmup=100, at=110)
    story.loss = story.loss * story.fade(0.7, 10, at=1100)
    again = examine(rule, story.run(), near=110)
    assert again.log_odds < alone.log_odds


def test_a_rise_elsewhere_is_excluded() -> None:
    assert examine(rule, thrown_off().run()).excluded


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, early(warmup=100, at=110).run("lr"), near=110)
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
