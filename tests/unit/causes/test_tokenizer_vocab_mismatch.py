"""Ids that do not fit: a first loss above a guess, an ordinary one, one in another unit, a late event, no vocabulary size."""

from __future__ import annotations

import math

import numpy as np
from cause_runs import AT, Story, bad_batch, early, examine, holds, signals, silent

from forensics.causes.data import tokenizer_vocab_mismatch as rule


def started_at(loss: float) -> Story:
    story = early(warmup=100, at=25)
    story.loss = story.loss * loss / float(np.median(story.loss[:3]))
    story.config["model.vocab_size"] = 1000
    return story


def test_a_first_loss_above_a_guess() -> None:
    found = examine(rule, started_at(math.log(1000) + 2).run(), near=25)
    assert holds(found)
    assert signals(found.supporting) == {"loss"}


def test_an_ordinary_first_loss_is_excluded() -> None:
    assert examine(rule, started_at(math.log(1000)).run(), near=25).excluded


def test_a_summed_loss_says_nothing() -> None:
    found = examine(rule, started_at(900).run(), near=25)
    assert silent(found)
    assert any("mean per token" in need for need in found.missing)


def test_a_late_event_is_not_its_matter() -> None:
    story = bad_batch(AT)
    story.config["vocab_size"] = 4
    assert silent(examine(rule, story.run()))


def test_a_missing_vocabulary_size_is_asked_for() -> None:
    found = examine(rule, early(warmup=100).run(), near=40)
    assert silent(found)
    assert any("vocab_size" in need for need in found.missing)
