"""Memory errors: counted before the event by step or by the clock, long before, corrected ones, no counter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, bad_batch, holds, silent

from forensics.causes.hardware import ecc_or_row_remap as rule
from forensics.model import EventKind, Run


def counted(at: int, name: str = "system.gpu.3.uncorrectedMemoryErrors") -> Story:
    story = bad_batch()
    story.more[name] = (np.arange(story.points) >= at).astype(np.float64)
    return story


def timed(run: Run, seconds: float) -> Run:
    clock = 1e9 + seconds * np.arange(1500, dtype=np.float64)
    return replace(run, signals=tuple(replace(s, wall_times=clock) for s in run.signals))


def test_an_error_just_before_the_event() -> None:
    found = ask(rule, counted(AT - 20).run(), EventKind.SPIKE)
    assert holds(found)
    assert found.supporting[0].step == AT - 20


def test_the_hour_is_taken_from_the_clock() -> None:
    run = counted(AT - 20).run()
    assert holds(ask(rule, timed(run, 60), EventKind.SPIKE))
    assert ask(rule, timed(run, 600), EventKind.SPIKE).excluded


def test_an_error_long_before_is_excluded() -> None:
    assert ask(rule, counted(200).run(), EventKind.SPIKE).excluded


def test_corrected_errors_are_only_a_hint() -> None:
    assert ask(rule, counted(AT - 20, "system.gpu.3.correctedMemoryErrors").run(), EventKind.SPIKE).log_odds == 0.5


def test_missing_counters_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.SPIKE)
    assert silent(found)
    assert any("ECC" in need for need in found.missing)
