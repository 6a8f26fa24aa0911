"""A reset loss scale: at a resume, without one, a scale that goes on, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, bad_batch, holds, silent

from forensics.causes.resume import resume_scaler_reset as rule
from forensics.model import EventKind


def reset(factor: float = 16.0) -> Story:
    story = Story()
    scale = np.full(story.points, 4096.0)
    scale[AT : AT + 6] = np.maximum(4096.0 * factor / 2.0 ** np.arange(6), 4096.0)
    scale[AT + 6 :] = 4096.0
    story.more["loss_scale"] = scale
    return story


def test_a_jump_at_a_resume_that_is_halved_again() -> None:
    story = reset()
    story.resumed_at(AT)
    found = ask(rule, story.run(), EventKind.LOSS_SCALE_DROP, AT + 1)
    assert holds(found)
    assert len(found.supporting) == 2
    assert "4096" in found.remedy


def test_without_a_resume_it_is_weaker_and_marks_are_asked_for() -> None:
    story = reset()
    story.resumed_at(AT)
    found = ask(rule, reset().run(), EventKind.LOSS_SCALE_DROP, AT + 1)
    assert found.log_odds < ask(rule, story.run(), EventKind.LOSS_SCALE_DROP, AT + 1).log_odds
    assert any("resume" in need for need in found.missing)


def test_an_ordinary_doubling_at_a_resume_is_excluded() -> None:
    story = reset(2.0)
    story.resumed_at(AT)
    assert ask(rule, story.run(), EventKind.LOSS_SCALE_DROP, AT + 1).excluded


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = ask(rule, bad_batch().run(), EventKind.SPIKE)
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)
