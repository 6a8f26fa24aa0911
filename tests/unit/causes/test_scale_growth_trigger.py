"""A doubling of the loss scale before the event: taken back twice, taken back once, long before, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, signals, silent, thrown_off

from forensics.causes.precision import scale_growth_trigger as rule
from forensics.model import Run, Signal


def doubled(at: int, halvings: int) -> Story:
    story = thrown_off()
    scale = np.full(story.points, 32768.0)
    scale[at:] = 65536.0
    scale[at + 5 :] = 65536.0 / 2.0**halvings
    story.more["loss_scale"] = scale
    return story


def test_a_doubling_that_was_taken_back_twice() -> None:
    found = examine(rule, doubled(AT - 4, 3).run())
    assert holds(found)
    assert {"loss_scale", "loss"} <= signals(found.supporting)
    assert "32768" in found.remedy


def test_one_halving_is_the_scaler_at_work() -> None:
    assert examine(rule, doubled(AT - 4, 1).run()).excluded


def test_a_doubling_long_before_is_excluded() -> None:
    assert examine(rule, doubled(AT - 200, 3).run()).excluded


def test_a_doubling_somewhere_in_a_gap_is_weaker() -> None:
    run = doubled(AT - 4, 3).run()
    far = tuple(Signal(s.name, s.steps + 300 * (s.steps >= AT - 4), s.values, spans=s.spans, role=s.role, rank=s.rank) for s in run.signals)
    found = examine(rule, Run(run.path, run.name, run.sources, far), near=AT + 300)
    assert "somewhere between steps" in found.supporting[0].text
    assert found.log_odds < examine(rule, doubled(AT - 4, 3).run()).log_odds


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)


def test_every_event_after_a_doubling_counts_further() -> None:
    story = Story()
    scale = np.full(story.points, 1024.0)
    for n, at in enumerate((300, 600, 900, 1200), 1):
        story.loss = story.loss * story.fade(0.7, 10, at=at)
        scale[at - 4 :] = 1024.0 * 2.0**n
        scale[at + 2 : at + 8] = 1024.0 * 2.0 ** (n - 3)
    story.more["loss_scale"] = scale
    found = examine(rule, story.run())
    assert any("of 4 events come within 20 steps" in e.text for e in found.supporting)
