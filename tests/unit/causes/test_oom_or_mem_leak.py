"""A log that ends: memory that grew, a longest last batch, flat memory, another event, nothing logged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, silent

from forensics.causes.hardware import oom_or_mem_leak as rule
from forensics.model import EventKind


def leak(factor: float) -> Story:
    story = Story()
    t = np.arange(story.points) / story.points
    story.more["system.gpu.0.memoryAllocated"] = 98.0 / factor * factor**t + 0.05 * np.random.default_rng(1).normal(size=story.points)
    return story


def test_memory_grew_to_the_end() -> None:
    run = replace(leak(2).run(), notes={"exit_code": 137})
    found = ask(rule, run, EventKind.UNFINISHED, 1499)
    assert holds(found)
    assert len(found.supporting) == 3


def test_the_last_batch_was_the_longest() -> None:
    story = Story()
    story.more["seq_len"] = np.random.default_rng(1).integers(100, 2000, story.points).astype(np.float64)
    story.more["seq_len"][-1] = 8000
    assert "8000" in ask(rule, story.run(), EventKind.UNFINISHED, 1499).supporting[0].text


def test_flat_memory_is_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, leak(1.0).run(), EventKind.UNFINISHED, 1499).excluded
    assert silent(ask(rule, leak(2).run(), EventKind.SPIKE))


def test_missing_memory_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.UNFINISHED, 1499)
    assert silent(found)
    assert any("memory" in need for need in found.missing)
