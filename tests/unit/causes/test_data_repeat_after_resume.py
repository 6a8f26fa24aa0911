"""Data that start again: the same ids, ids that go on, and ids that are not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent

from forensics.causes.data import data_repeat_after_resume as rule


def repeated() -> Story:
    story = Story()
    story.batch[AT:] = np.arange(story.points - AT)
    story.loss = story.loss * story.step_to(0.9)
    return story


def test_ids_that_begin_again() -> None:
    found = examine(rule, repeated().run())
    assert holds(found)
    assert "batch_id" in signals(found.supporting)


def test_ids_that_go_on_are_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_one_batch_twice_is_no_repetition_of_the_data() -> None:
    story = bad_batch()
    story.batch[AT] = 3.0
    assert silent(examine(rule, story.run()))


def test_missing_ids_are_asked_for() -> None:
    found = examine(rule, bad_batch().run("batch_id"))
    assert silent(found)
    assert any("batch ids" in need for need in found.missing)
