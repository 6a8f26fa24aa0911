"""A hang: GPUs busy long after the last step, idle ones, a log that simply ends, another event, no clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, silent

from forensics.causes.hardware import nccl_hang as rule
from forensics.model import EventKind, Run, Signal
from forensics.vocabulary import assign_roles


def ended(use: float, minutes: float) -> Run:
    run = Story().run()
    clock = 1e9 + 2.0 * np.arange(1500)
    signals = tuple(replace(s, wall_times=clock) for s in run.signals)
    times = np.arange(1e9, clock[-1] + 60 * minutes, 15.0)
    steps = np.minimum((times - 1e9) / 2, 1499).astype(np.int64)
    gpu = Signal("system.gpu.0.gpu", steps, np.where(times <= clock[-1], 97.0, use), wall_times=times)
    return replace(run, signals=assign_roles((*signals, gpu)))


def test_gpus_busy_long_after_the_last_step() -> None:
    found = ask(rule, ended(100, 25), EventKind.UNFINISHED, 1499)
    assert holds(found)
    assert "25 minutes" in found.supporting[0].text


def test_idle_gpus_and_a_log_that_just_ends_are_excluded() -> None:
    assert ask(rule, ended(0, 25), EventKind.UNFINISHED, 1499).excluded
    assert ask(rule, ended(100, 1), EventKind.UNFINISHED, 1499).excluded


def test_a_spike_is_not_its_matter() -> None:
    assert silent(ask(rule, ended(100, 25), EventKind.SPIKE))


def test_missing_clocks_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.UNFINISHED, 1499)
    assert silent(found)
    assert any("wall times" in need for need in found.missing)
