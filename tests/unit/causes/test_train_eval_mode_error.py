"""The wrong mode after an evaluation: several events right after evaluations, one, one that is not, no evaluations."""

from __future__ import annotations

import numpy as np
from cause_events import ask, event
from cause_runs import Story, holds, silent

from forensics.causes.resume import train_eval_mode_error as rule
from forensics.model import EventKind, Run, Signal
from forensics.vocabulary import assign_roles


def evaluated(every: int = 100) -> Run:
    run = Story().run()
    steps = np.arange(every, 1500, every, dtype=np.int64)
    roles = assign_roles((*run.signals, Signal("val_loss", steps, np.full(len(steps), 2.2))))
    return Run(run.path, run.name, run.sources, roles, run.attempts, run.config)


def test_events_right_after_evaluations() -> None:
    run = evaluated()
    found = ask(rule, run, EventKind.LEVEL_SHIFT, 901, event(run, EventKind.DROP, 401), event(run, EventKind.LEVEL_SHIFT, 601))
    assert holds(found)
    assert "3 of 3" in found.supporting[0].text


def test_a_single_event_there_may_be_chance() -> None:
    assert silent(ask(rule, evaluated(), EventKind.LEVEL_SHIFT, 901))


def test_an_event_elsewhere_is_excluded() -> None:
    run = evaluated()
    assert ask(rule, run, EventKind.LEVEL_SHIFT, 950, event(run, EventKind.DROP, 401)).excluded


def test_frequent_evaluations_say_nothing() -> None:
    run = evaluated(5)
    assert silent(ask(rule, run, EventKind.LEVEL_SHIFT, 901, event(run, EventKind.DROP, 401)))


def test_missing_evaluations_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("evaluations" in need for need in found.missing)
