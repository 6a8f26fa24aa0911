"""A loss rounded to bf16: one step of it, many steps of it, exact numbers, a loss that is not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask, event
from cause_runs import AT, Story, holds, silent

from forensics.causes.precision import bf16_loss_quantisation as rule
from forensics.correlate.view import View
from forensics.detectors import Incident
from forensics.model import EventKind
from forensics.primitives.curves import Curves


def rounded(quanta: int) -> Story:
    story = Story()
    rng = np.random.default_rng(1)
    story.loss = 1.6875 + (rng.integers(-1, 2, story.points) + np.where(np.arange(story.points) >= AT, quanta, 0)) * 2.0**-7
    return story


def asked(story: Story, height: float) -> object:
    run = story.run()
    main = event(run, EventKind.LEVEL_SHIFT, AT, height=height)
    return rule.examine(View(run, Curves(run), Incident(main, (main,))))


def test_a_shift_of_one_step_of_the_rounding() -> None:
    found = asked(rounded(1), 2.0**-7)
    assert holds(found)  # type: ignore[arg-type]


def test_printed_with_four_digits_it_is_still_seen() -> None:
    story = rounded(1)
    story.loss = np.round(story.loss, 4)
    assert holds(asked(story, 2.0**-7))  # type: ignore[arg-type]


def test_a_shift_of_many_steps_is_excluded() -> None:
    assert asked(rounded(30), 30 * 2.0**-7).excluded  # type: ignore[attr-defined]


def test_exact_numbers_are_excluded() -> None:
    assert ask(rule, Story().run(), EventKind.LEVEL_SHIFT).excluded


def test_a_missing_loss_is_asked_for() -> None:
    found = ask(rule, Story().run("loss"), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("losses" in need for need in found.missing)
