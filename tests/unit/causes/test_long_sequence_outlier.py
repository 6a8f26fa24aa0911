"""Long sequences early on: the gradient follows them, it does not, constant lengths, a late event, no lengths."""

from __future__ import annotations

import numpy as np
from cause_runs import Story, bad_batch, early, examine, holds, signals, silent

from forensics.causes.data import long_sequence_outlier as rule


def varied(*, follows: bool) -> Story:
    story = early(warmup=100, at=60)
    lengths = np.random.default_rng(4).integers(100, 2000, story.points).astype(np.float64)
    lengths[58:64] = 4000
    story.more["seq_len"] = lengths
    if follows:
        story.grad = story.grad * (lengths / 1000) ** 1.5
    return story


def test_the_gradient_follows_the_length() -> None:
    found = examine(rule, varied(follows=True).run(), near=60)
    assert holds(found)
    assert signals(found.supporting) == {"seq_len"}
    assert len(found.supporting) == 2


def test_an_unrelated_gradient_and_constant_lengths_are_excluded() -> None:
    story = varied(follows=False)
    story.more["seq_len"] = np.random.default_rng(9).integers(100, 2000, story.points).astype(np.float64)
    assert examine(rule, story.run(), near=60).excluded
    story.more["seq_len"] = np.full(story.points, 2048.0)
    assert examine(rule, story.run(), near=60).excluded


def test_a_late_event_is_not_its_matter() -> None:
    story = bad_batch()
    story.more["seq_len"] = varied(follows=True).more["seq_len"]
    assert silent(examine(rule, story.run()))


def test_missing_lengths_are_asked_for() -> None:
    found = examine(rule, early(warmup=100).run(), near=40)
    assert silent(found)
    assert any("sequence length" in need for need in found.missing)
