"""Drift of the output logits: far from zero, near zero, steady, not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent, thrown_off

from forensics.causes.architecture import output_logit_divergence as rule


def drift(end: float, *, head: bool = False) -> Story:
    story = thrown_off()
    noise = 0.05 * np.random.default_rng(1).normal(size=story.points)
    story.more["logz"] = 0.5 + np.clip(np.arange(story.points) - (AT - 500), 0, 500) / 500 * (end - 0.5) + noise
    if head:
        story.more["param_norm/lm_head"] = 40 * np.exp(np.arange(story.points) / 2000)
    return story


def test_a_log_partition_that_drifted_away() -> None:
    found = examine(rule, drift(14, head=True).run())
    assert holds(found)
    assert {"logz", "param_norm/lm_head"} <= signals(found.supporting)


def test_negative_logits_count_as_well() -> None:
    assert holds(examine(rule, drift(-14).run()))


def test_near_zero_is_excluded() -> None:
    assert examine(rule, drift(0.6).run()).excluded


def test_a_large_but_steady_one_is_no_evidence() -> None:
    story = drift(14)
    story.more["logz"] = 14 + 0.05 * np.random.default_rng(1).normal(size=story.points)
    assert silent(examine(rule, story.run()))


def test_a_missing_log_partition_is_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("log-partition" in need for need in found.missing)
