"""Waiting for data: idle GPUs, a logged waiting time, busy GPUs, no times."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, examine, holds, silent

from forensics.causes.hardware import dataloader_starvation as rule
from forensics.model import EventKind


def waiting(use: float = 0.5) -> Story:
    story = Story()
    rng = np.random.default_rng(13)
    story.more["step_time"] = np.exp(0.005 * rng.normal(size=story.points)) * story.step_to(1.5)
    story.more["gpu_util"] = 97 * np.exp(0.005 * rng.normal(size=story.points)) * story.step_to(use)
    return story


def test_gpus_idle_during_the_slowdown() -> None:
    found = examine(rule, waiting().run())
    assert holds(found)
    assert "use of the GPU fell" in found.supporting[0].text


def test_a_logged_waiting_time_agrees() -> None:
    story = waiting()
    story.more["data_time"] = 0.02 + np.where(np.arange(story.points) >= AT, 0.45, 0.0)
    assert any("waiting for data" in e.text for e in examine(rule, story.run()).supporting)


def test_busy_gpus_exclude_it() -> None:
    assert examine(rule, waiting(1.0).run()).excluded


def test_missing_signals_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.THROUGHPUT_CHANGE)
    assert silent(found)
    assert any("step times" in need for need in found.missing)
    story = waiting()
    del story.more["gpu_util"]
    found = examine(rule, story.run())
    assert silent(found)
    assert any("GPUs" in need for need in found.missing)
