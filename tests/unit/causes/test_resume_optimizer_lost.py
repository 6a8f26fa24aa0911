"""A lost optimizer state: right at first and then off, off at once, no resume, what the checkpoint holds."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent, thrown_off

from forensics.causes.resume import resume_optimizer_lost as rule
from forensics.model import Run, Signal


def test_first_losses_right_then_a_rise() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert any("checkpoint" in need for need in found.missing)


def test_a_loss_that_is_off_at_once_speaks_against_it() -> None:
    story = thrown_off()
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert "loss" in signals(found.against)


def test_no_resume_is_excluded() -> None:
    assert examine(rule, thrown_off().run()).excluded


def test_a_resume_long_before_is_excluded() -> None:
    story = thrown_off()
    story.resumed_at(AT - 200)
    assert examine(rule, story.run()).excluded


def test_without_a_learning_rate_continuity_is_not_claimed() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run("lr"))
    assert not silent(found)
    assert "lr" not in signals(found.supporting)


def with_gap(story: Story, missing: int = 400) -> Run:
    """The run as logged, with a stretch of steps missing just before the event."""
    run = story.run()
    return Run(run.path, run.name, run.sources, tuple(_later(s, missing) for s in run.signals), run.attempts, run.config)


def _later(signal: Signal, missing: int) -> Signal:
    steps = signal.steps + np.where(np.arange(len(signal)) >= AT - 3, missing, 0)
    return Signal(signal.name, steps, signal.values, spans=signal.spans, role=signal.role, rank=signal.rank)


def test_a_gap_in_the_log_may_hide_a_resume() -> None:
    found = examine(rule, with_gap(thrown_off(surge=0.0)), near=AT + 400)
    assert found.excluded is None
    assert "are not in the log" in found.supporting[0].text
    assert any("ordinary" in e.text for e in found.supporting)
    assert any("marks of a resume" in need for need in found.missing)


def test_a_gradient_that_surged_before_is_no_ordinary_one() -> None:
    story = thrown_off(surge=0.0)
    story.grad[AT - 1] *= 20
    found = examine(rule, with_gap(story), near=AT + 400)
    assert not any("ordinary" in e.text for e in found.supporting)


def test_skipped_steps_while_the_loss_stays_away() -> None:
    story = thrown_off(height=0.6, surge=0.0, length=10_000)
    scale = np.full(story.points, 2.0**20)
    scale[AT + 1 : AT + 6] = 2.0 ** np.arange(19, 14, -1)
    scale[AT + 6 :] = 2.0**15
    story.more["loss_scale"] = scale
    found = examine(rule, with_gap(story), near=AT + 400)
    assert any("were skipped" in e.text for e in found.supporting)
