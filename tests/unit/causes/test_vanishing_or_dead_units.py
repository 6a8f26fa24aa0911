"""Layers that do not learn: gradients that vanish, zero activations, even gradients, another event, nothing logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import AT, Story, examine, holds, signals, silent

from forensics.causes.architecture import vanishing_or_dead_units as rule
from forensics.model import EventKind


def layers(ratio: float) -> Story:
    story = Story()
    for number, share in ((0, ratio), (5, np.sqrt(ratio)), (11, 1.0)):
        story.more[f"grad/layer_{number}"] = 0.1 * share * Story(seed=number).grad
    return story


def test_early_layers_receive_nothing() -> None:
    found = ask(rule, layers(1e-5).run(), EventKind.PLATEAU)
    assert holds(found)
    assert "layer_0" in found.supporting[0].text


def test_zero_activations_are_the_other_form() -> None:
    story = Story()
    story.more["dead_units/layer_3"] = np.full(story.points, 0.85)
    assert "85%" in ask(rule, story.run(), EventKind.PLATEAU).supporting[0].text


def test_float16_has_a_reason_of_its_own() -> None:
    story = layers(1e-5)
    story.config["fp16"] = True
    assert ask(rule, story.run(), EventKind.PLATEAU).against


def test_even_gradients_are_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, layers(0.5).run(), EventKind.PLATEAU).excluded
    assert silent(ask(rule, layers(1e-5).run(), EventKind.SPIKE))


def test_missing_layers_are_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU)
    assert silent(found)
    assert any("layers" in need for need in found.missing)


def dead(level: float, grad: float) -> Story:
    """The loss jumps to a level and stays there; the gradient norm changes by a factor."""
    story = Story()
    story.loss = np.where(np.arange(story.points) >= AT, level, 1.0) * np.where(np.arange(story.points) >= AT, 1.0, story.loss)
    story.grad = story.grad * story.step_to(grad)
    return story


def test_a_loss_back_at_its_start_under_a_smaller_gradient() -> None:
    found = examine(rule, dead(float(Story().loss[:3].mean()), 0.2).run())
    assert holds(found)
    assert {"loss", "grad_norm"} <= signals(found.supporting)


def test_another_level_is_no_sign_and_a_larger_gradient_speaks_against_it() -> None:
    assert silent(examine(rule, dead(6.0, 0.2).run()))
    assert "grad_norm" in signals(examine(rule, dead(float(Story().loss[:3].mean()), 3.0).run()).against)
