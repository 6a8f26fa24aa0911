"""A stretch of poor data: held and over at once, a recovery that fades, a change of the rate at its end, sources, no loss."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, lr_jump, signals, silent, thrown_off

from forensics.causes.data import degenerate_data_pocket as rule

LENGTH = 80


def pocket() -> Story:
    story = Story()
    story.loss = story.loss * story.step_to(1.5, until=AT + LENGTH)
    story.grad = story.grad * story.fade(1.0, 2)
    return story


def test_a_rise_that_holds_and_ends_at_once() -> None:
    found = examine(rule, pocket().run())
    assert holds(found)
    assert {"loss", "grad_norm", "lr"} <= signals(found.supporting)
    assert str(AT + LENGTH) in found.supporting[0].text


def test_a_recovery_that_fades_is_excluded() -> None:
    assert examine(rule, thrown_off(length=40).run()).excluded


def test_a_rate_that_came_back_there_speaks_against_it() -> None:
    story = pocket()
    story.lr = lr_jump().lr.copy()
    story.lr[AT + 60 : AT + LENGTH] = story.lr[AT + 59]
    assert "lr" in signals(examine(rule, story.run()).against)


def test_one_source_alone_agrees_and_all_together_speak_against_it() -> None:
    story, together = pocket(), pocket()
    steady = 1.5 * np.exp(0.01 * np.random.default_rng(3).normal(size=story.points))
    story.more |= {"loss_web": story.loss * 1.1, "loss_code": steady}
    together.more |= {"loss_web": story.loss * 1.1, "loss_code": story.loss * 0.8}
    alone, all_of_them = examine(rule, story.run()), examine(rule, together.run())
    assert alone.log_odds > examine(rule, pocket().run()).log_odds > all_of_them.log_odds
    assert any("per data source" in need for need in examine(rule, pocket().run()).missing)


def test_a_missing_loss_is_asked_for() -> None:
    story = pocket()
    story.grad = story.grad * story.step_to(50, until=AT + 3)
    found = examine(rule, story.run("loss"))
    assert silent(found)
    assert any("loss" in need for need in found.missing)
