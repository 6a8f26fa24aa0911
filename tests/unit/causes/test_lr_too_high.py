"""A learning rate that is too high: unrest at full rate, an isolated spike, a rate that is not logged."""

from __future__ import annotations

from cause_runs import Story, bad_batch, examine, holds, lr_jump, signals, swinging, thrown_off

from forensics.causes.optimization import lr_too_high as rule


def test_a_swing_at_an_absurd_rate() -> None:
    story = swinging()
    story.lr = story.lr * 100
    found = examine(rule, story.run())
    assert holds(found)
    assert "lr" in signals(found.supporting)


def test_several_events_at_full_rate() -> None:
    story = Story(warmup=1)
    for at in (300, 600, 900, 1200):
        story.loss = story.loss * story.fade(0.6, 12, at=at)
        story.grad = story.grad * story.fade(4, 12, at=at)
    story.lr[:] = 3e-4
    assert holds(examine(rule, story.run()))


def test_a_single_spike_speaks_against_it() -> None:
    assert not holds(examine(rule, bad_batch().run()))


def test_a_jump_of_the_rate_is_another_cause() -> None:
    found = examine(rule, lr_jump().run())
    assert "lr" in signals(found.against)
    assert not holds(found)


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, thrown_off().run("lr"))
    assert any("learning rate" in need for need in found.missing)


def test_a_rate_above_the_configured_one_counts_further() -> None:
    story = swinging()
    plain = examine(rule, story.run())
    story.config = {"learning_rate": 1e-4}
    found = examine(rule, story.run())
    assert any("the configuration says 0.0001" in e.text for e in found.supporting)
    assert found.log_odds > plain.log_odds
    story.config = {"learning_rate": 3e-4}
    assert examine(rule, story.run()).log_odds == plain.log_odds
