"""Wrong targets: the accuracy falls and stays down, it holds, the loss comes down again, no accuracy."""

from __future__ import annotations

import numpy as np
from cause_runs import Story, bad_batch, examine, holds, new_data, signals, silent

from forensics.causes.data import label_noise_or_shuffle as rule


def noisy_labels(accuracy: float = 0.6) -> Story:
    story = new_data()
    rng = np.random.default_rng(7)
    story.grad = Story().grad * story.step_to(1.7)
    story.more["accuracy"] = 0.9 * story.step_to(accuracy) + 0.01 * rng.normal(size=story.points)
    return story


def test_accuracy_falls_and_the_loss_stays_up() -> None:
    found = examine(rule, noisy_labels().run())
    assert holds(found)
    assert {"accuracy", "loss", "grad_norm"} <= signals(found.supporting)


def test_an_accuracy_that_holds_excludes_it() -> None:
    assert examine(rule, noisy_labels(1.0).run()).excluded


def test_a_loss_that_comes_down_again_speaks_against_it() -> None:
    story = noisy_labels()
    story.loss = Story().loss * story.fade(0.5, 60)
    assert "loss" in signals(examine(rule, story.run()).against)


def test_a_missing_accuracy_is_asked_for() -> None:
    found = examine(rule, bad_batch().run())
    assert silent(found)
    assert any("accuracy" in need for need in found.missing)


def floor(grad: float) -> Story:
    story = Story()
    story.loss = story.loss * story.step_to(2.5)
    story.grad = story.grad * story.step_to(grad)
    return story


def test_without_an_accuracy_a_new_floor_under_a_larger_gradient_is_a_sign() -> None:
    assert holds(examine(rule, floor(1.7).run()))
    assert examine(rule, floor(0.6).run()).log_odds < examine(rule, floor(1.7).run()).log_odds


def test_without_an_accuracy_a_loss_that_comes_down_again_is_none() -> None:
    story = Story()
    story.loss = story.loss * story.fade(1.5, 60)
    assert silent(examine(rule, story.run()))
