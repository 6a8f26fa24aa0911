"""Unequal counts of tokens: noise where few count, an empty batch at a spike, even batches, counts that are not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, bad_batch, examine, holds, silent

from forensics.causes.data import packing_imbalance as rule
from forensics.model import EventKind


def uneven() -> Story:
    story = Story()
    rng = np.random.default_rng(6)
    counts = np.where(np.arange(story.points) >= AT, rng.choice([200.0, 2000.0, 4000.0], story.points), 4000.0)
    story.more["valid_tokens"] = counts
    story.loss = story.loss * np.exp(0.1 * rng.normal(size=story.points) * np.sqrt(200 / counts))
    return story


def test_the_loss_is_off_where_few_tokens_count() -> None:
    found = ask(rule, uneven().run(), EventKind.NOISE_CHANGE, AT + 200)
    assert holds(found)
    assert found.supporting[0].signal == "valid_tokens"


def test_an_almost_empty_batch_at_a_spike() -> None:
    story = bad_batch()
    story.more["valid_tokens"] = np.random.default_rng(6).integers(3500, 4500, story.points).astype(np.float64)
    story.more["valid_tokens"][AT] = 12
    found = examine(rule, story.run())
    assert holds(found)
    assert "12 tokens" in found.supporting[0].text


def test_even_batches_are_excluded() -> None:
    story = bad_batch()
    story.more["valid_tokens"] = np.full(story.points, 4096.0)
    assert examine(rule, story.run()).excluded


def test_uneven_batches_that_the_loss_does_not_mind_are_no_evidence() -> None:
    story = bad_batch()
    story.more["valid_tokens"] = np.random.default_rng(6).integers(1000, 9000, story.points).astype(np.float64)
    assert silent(examine(rule, story.run()))


def test_missing_counts_are_asked_for() -> None:
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("target tokens" in need for need in found.missing)
