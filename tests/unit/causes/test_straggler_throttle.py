"""A slow device: one lasting slowdown with a falling clock, one slow rank, all ranks, many slowdowns, no times."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, examine, holds, silent

from forensics.causes.hardware import straggler_throttle as rule
from forensics.model import EventKind


def slower(factor: float = 1.1) -> Story:
    story = Story()
    rng = np.random.default_rng(12)
    story.more["step_time"] = np.exp(0.005 * rng.normal(size=story.points)) * story.step_to(factor)
    story.more["system.gpu.0.smClock"] = 1980 * np.exp(0.002 * rng.normal(size=story.points)) * story.step_to(1 / factor)
    return story


def test_a_lasting_slowdown_with_a_falling_clock() -> None:
    found = examine(rule, slower().run())
    assert holds(found)
    assert any("throttled" in e.text for e in found.supporting)
    assert any("unaffected" in e.text for e in found.supporting)


def test_one_slow_rank_agrees_and_all_slow_ranks_speak_against_it() -> None:
    one, every = slower(), slower()
    for rank in range(4):
        one.more[f"rank{rank}_time"] = Story(seed=rank).grad * 0.01 + one.step_to(1.4 if rank == 2 else 1.0)
        every.more[f"rank{rank}_time"] = Story(seed=rank).grad * 0.01 + every.step_to(1.4)
    assert any("rank2" in e.text for e in examine(rule, one.run()).supporting)
    assert any("all ranks" in e.text for e in examine(rule, every.run()).against)


def test_a_steady_run_has_nothing_to_explain() -> None:
    assert silent(ask(rule, slower(1.0).run(), EventKind.SPIKE))


def test_missing_times_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.THROUGHPUT_CHANGE, AT)
    assert silent(found)
    assert any("step times" in need for need in found.missing)
