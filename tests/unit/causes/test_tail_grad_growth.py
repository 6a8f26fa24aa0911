"""Growth of the gradient as the rate falls: on the line, off the line, with a rising loss, a rate that is not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask, event
from cause_runs import Story, holds, silent

from forensics.causes.optimization import tail_grad_growth as rule
from forensics.correlate.view import View
from forensics.detectors import Incident
from forensics.model import EventKind
from forensics.primitives.curves import Curves

LATE = 1300


def growing(power: float) -> Story:
    story = Story()
    t = np.arange(story.points)
    story.lr = 3e-4 * np.minimum((t + 1) / 100, 1) * np.where(t < 100, 1, 0.05 ** ((t - 100) / 1400))
    story.grad = story.grad * (story.lr / 3e-4) ** power
    return story


def test_a_slope_of_minus_one_half() -> None:
    found = ask(rule, growing(-0.5).run(), EventKind.GRAD_NORM_SURGE, LATE)
    assert holds(found)
    assert "slope -0.5" in found.supporting[0].text


def test_another_slope_is_excluded() -> None:
    assert ask(rule, growing(-1.2).run(), EventKind.GRAD_NORM_SURGE, LATE).excluded
    assert ask(rule, growing(0.0).run(), EventKind.GRAD_NORM_SURGE, LATE).excluded


def test_a_rising_loss_excludes_it() -> None:
    run = growing(-0.5).run()
    main, drift = event(run, EventKind.GRAD_NORM_SURGE, LATE), event(run, EventKind.DRIFT, LATE)
    assert rule.examine(View(run, Curves(run), Incident(main, (main, drift)))).excluded


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = ask(rule, growing(-0.5).run("lr"), EventKind.GRAD_NORM_SURGE, LATE)
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
