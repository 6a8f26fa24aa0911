"""The noise of a small batch: small, large, and not logged."""

from __future__ import annotations

import numpy as np
import pytest
from cause_runs import bad_batch, examine, noisier, signals, silent

from forensics.causes.optimization import batch_noise_small as rule


def test_noise_at_a_batch_of_two() -> None:
    story = noisier()
    story.more["bs"] = np.full(story.points, 2.0)
    found = examine(rule, story.run())
    assert "loss" in signals(found.supporting)
    assert not found.against


@pytest.mark.parametrize("size", [32.0, 512.0])
def test_a_large_batch_is_excluded(size: float) -> None:
    story = noisier()
    story.more["bs"] = np.full(story.points, size)
    assert examine(rule, story.run()).excluded


def test_a_spike_is_not_noise() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_a_missing_batch_size_is_asked_for() -> None:
    found = examine(rule, noisier().run())
    assert silent(found)
    assert any("batch size" in need for need in found.missing)
