"""Artefacts of logging: steps written twice, a clean continuation, an ordinary spike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, silent

from forensics.causes.resume import metric_artifact as rule
from forensics.model import Attempt, Run


def written_twice(back: int) -> Run:
    """The second process does the last ``back`` steps of the first one again."""
    run = Story().run()
    steps = np.concatenate([np.arange(AT + back), np.arange(AT, len(run.signals[0]) - back)])
    signals = tuple(replace(s, steps=steps, starts=(0, AT + back)) for s in run.signals)
    attempts = (Attempt(0, AT + back - 1), Attempt(AT, int(steps[-1]), AT - 1))
    return replace(run, signals=signals, attempts=attempts)


def test_steps_that_were_written_twice() -> None:
    found = examine(rule, written_twice(back=60))
    assert holds(found)
    assert "twice" in found.supporting[0].text


def test_a_continued_run_with_an_event_is_a_hint_at_most() -> None:
    story = bad_batch()
    story.resumed_at(AT)
    assert examine(rule, story.run()).log_odds < examine(rule, written_twice(back=60)).log_odds


def test_a_spike_in_one_piece_is_silent() -> None:
    assert silent(examine(rule, bad_batch().run()))


def test_nothing_is_missing_to_tell_it() -> None:
    assert examine(rule, bad_batch().run("lr", "grad_norm", "batch_id")).missing == []


def test_it_needs_no_signal_but_the_one_of_the_event() -> None:
    assert silent(examine(rule, bad_batch().run("lr", "grad_norm", "batch_id")))
