"""A bad batch: once, again and again, a lasting rise, a gradient that led, and batches that are not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, explosion, holds, lr_jump, signals, thrown_off

from forensics.causes.data import bad_batch_outlier as rule


def test_a_spike_that_ends_with_its_batch() -> None:
    found = examine(rule, bad_batch().run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert not found.against
    assert "900" in found.remedy


def test_the_same_batch_at_several_events_is_stronger() -> None:
    found = examine(rule, bad_batch(400, 700, 900).run())
    assert "batch_id" in signals(found.supporting)
    assert found.log_odds > examine(rule, bad_batch().run()).log_odds


def test_a_rise_that_lasts_speaks_against_it() -> None:
    found = examine(rule, thrown_off(length=60).run())
    assert "loss" in signals(found.against)
    assert not holds(found)


def test_a_gradient_that_led_speaks_against_it() -> None:
    found = examine(rule, explosion().run(), near=896)
    assert "grad_norm" in signals(found.against)
    assert not holds(found)


def test_a_jump_of_the_rate_speaks_against_it() -> None:
    assert not holds(examine(rule, lr_jump().run()))


def test_missing_batch_ids_are_asked_for() -> None:
    found = examine(rule, bad_batch().run("batch_id"))
    assert any("ids" in need for need in found.missing)
    assert holds(found)


def test_a_shard_at_every_event_is_the_data() -> None:
    story = bad_batch(300, 500, 700, 900, 1100)
    story.batch = np.arange(story.points, dtype=np.float64)
    alone = examine(rule, story.run())
    shard = np.random.default_rng(1).integers(0, 30, story.points).astype(np.float64)
    shard[[300, 500, 700, 900, 1100]] = 31
    story.more["shard_id"] = shard
    found = examine(rule, story.run())
    assert any("shard_id 31" in e.text for e in found.supporting)
    assert found.log_odds > alone.log_odds


def in_epochs(bad: int | None, length: int = 150) -> Story:
    """Batches come again every epoch; one of them may always be worse than the others."""
    story = bad_batch()
    story.batch = np.arange(story.points, dtype=np.float64) % length
    if bad is not None:
        story.loss[story.batch == bad] *= 1.08
    return story


def test_a_batch_that_is_bad_in_every_epoch() -> None:
    found = examine(rule, in_epochs(AT % 150).run())
    assert any("worst tenth" in e.text and e.signal == "batch_id" for e in found.supporting)
    assert found.log_odds > examine(rule, bad_batch().run()).log_odds


def test_a_batch_that_does_no_harm_elsewhere_speaks_against_it() -> None:
    found = examine(rule, in_epochs(None).run())
    assert any("no harm" in e.text for e in found.against)
    assert found.log_odds < examine(rule, bad_batch().run()).log_odds


def test_a_rate_above_the_usual_makes_an_ordinary_batch_enough() -> None:
    story = bad_batch()
    alone = examine(rule, story.run()).log_odds
    story.lr = story.lr * 100
    assert examine(rule, story.run()).log_odds < alone
