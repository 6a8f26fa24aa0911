"""Ranks with the same samples: losses that change alike, independent ones, another event, no losses per rank."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import holds, noisier, silent

from forensics.causes.data import worker_rng_duplicate as rule
from forensics.model import EventKind, Run


def ranks(*, same: bool) -> Run:
    story = noisier()
    rng = np.random.default_rng(10)
    shared = rng.normal(size=story.points)
    for rank in range(3):
        own = rng.normal(size=story.points)
        story.more[f"loss_rank{rank}"] = story.loss * np.exp(0.05 * (shared + 0.05 * own if same else own))
    return story.run()


def test_losses_that_change_alike() -> None:
    found = ask(rule, ranks(same=True), EventKind.NOISE_CHANGE)
    assert holds(found)
    assert "same samples" in found.supporting[0].text


def test_independent_losses_are_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, ranks(same=False), EventKind.NOISE_CHANGE).excluded
    assert silent(ask(rule, ranks(same=True), EventKind.SPIKE))


def test_missing_losses_per_rank_are_asked_for() -> None:
    found = ask(rule, noisier().run(), EventKind.NOISE_CHANGE)
    assert silent(found)
    assert any("every rank" in need for need in found.missing)
