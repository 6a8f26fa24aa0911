"""A schedule stepped too often: over too early, a warmup too short, as configured, no rate, no configuration."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, bad_batch, early, examine, holds, silent

from forensics.causes.optimization import lr_schedule_miscounted as rule
from forensics.model import EventKind


def over_at(step: int) -> Story:
    story = Story()
    t = np.arange(story.points)
    story.lr = 3e-4 * np.minimum((t + 1) / 20, 1) * 0.5 * (1 + np.cos(np.pi * np.clip((t - 20) / (step - 20), 0, 1)))
    story.config |= {"max_steps": 1500, "gradient_accumulation_steps": 3}
    return story


def test_a_schedule_that_was_over_at_a_third() -> None:
    found = ask(rule, over_at(500).run(), EventKind.PLATEAU, 510)
    assert holds(found)
    assert any("3 times earlier" in e.text for e in found.supporting)
    assert any("accumulation" in e.text for e in found.supporting)


def test_a_warmup_four_times_too_short() -> None:
    story = early(warmup=25)
    story.config["warmup_steps"] = 100
    found = examine(rule, story.run(), near=40)
    assert holds(found)
    assert any("4 times fewer" in e.text for e in found.supporting)


def test_a_schedule_as_configured_is_excluded() -> None:
    story = over_at(500)
    story.config["max_steps"] = 500
    assert ask(rule, story.run(), EventKind.PLATEAU, 510).excluded


def test_a_ratio_that_is_no_whole_number_is_excluded() -> None:
    story = over_at(500)
    story.config["max_steps"] = 1250
    assert ask(rule, story.run(), EventKind.PLATEAU, 510).excluded


def test_an_event_long_before_the_end_is_not_explained() -> None:
    assert silent(ask(rule, over_at(500).run(), EventKind.SPIKE, 200))


def test_a_missing_rate_or_configuration_is_asked_for() -> None:
    assert any("learning rate" in need for need in examine(rule, bad_batch().run("lr")).missing)
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("configuration" in need for need in found.missing)
