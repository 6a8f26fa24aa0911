"""A missing warmup: a start at full rate, a proper warmup, a rate that is not logged."""

from __future__ import annotations

from cause_runs import early, examine, holds, signals, silent, thrown_off

from forensics.causes.optimization import lr_warmup_missing as rule


def test_a_start_at_full_rate() -> None:
    found = examine(rule, early(warmup=1).run(), near=40)
    assert holds(found)
    assert "lr" in signals(found.supporting)


def test_a_warmup_excludes_it() -> None:
    assert examine(rule, early(warmup=100).run(), near=40).excluded


def test_a_late_event_excludes_it() -> None:
    story = thrown_off()
    story.lr[:] = 3e-4
    assert examine(rule, story.run()).excluded


def test_plain_sgd_needs_no_warmup_as_much() -> None:
    story = early(warmup=1)
    adaptive = examine(rule, story.run(), near=40)
    story.config = {"optimizer": "sgd"}
    assert examine(rule, story.run(), near=40).log_odds < adaptive.log_odds


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, early(warmup=1).run("lr"), near=40)
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)


def test_a_warmup_that_the_configuration_had_planned_counts_further() -> None:
    story = early(warmup=1)
    plain = examine(rule, story.run(), near=40)
    story.config = {"warmup_steps": 500}
    found = examine(rule, story.run(), near=40)
    assert any("the configuration says 500" in e.text for e in found.supporting)
    assert found.log_odds > plain.log_odds


def test_events_that_go_on_long_after_the_start_speak_against_it() -> None:
    story = early(warmup=1)
    alone = examine(rule, story.run(), near=40).log_odds
    for at in (700, 1000):
        story.loss = story.loss * story.fade(1.0, 40, at=at)
        story.grad = story.grad * story.fade(6, 40, at=at)
    found = examine(rule, story.run(), near=40)
    assert found.log_odds < alone
    assert "loss" in signals(found.against)


def test_a_rate_above_the_usual_speaks_against_it() -> None:
    story = early(warmup=1)
    alone = examine(rule, story.run(), near=40).log_odds
    story.lr = story.lr * 100
    assert examine(rule, story.run(), near=40).log_odds < alone
