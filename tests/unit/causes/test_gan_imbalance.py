"""Two opponents: the discriminator has won, they are in balance, another run, one loss only."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, bad_batch, examine, holds, silent

from forensics.causes.architecture import gan_imbalance as rule
from forensics.model import EventKind


def game(won: float) -> Story:
    story = Story()
    rng = np.random.default_rng(1)
    story.more["loss_D"] = won * np.exp(0.2 * rng.normal(size=story.points))
    story.more["loss_G"] = np.exp(np.arange(story.points) / 700) * np.exp(0.1 * rng.normal(size=story.points))
    return story


def test_a_discriminator_that_has_won() -> None:
    found = ask(rule, game(0.01).run("loss"), EventKind.DRIFT)
    assert holds(found)
    assert "loss_G" in found.supporting[1].text


def test_opponents_in_balance_are_excluded() -> None:
    assert ask(rule, game(1.3).run("loss"), EventKind.DRIFT).excluded


def test_a_run_without_opponents_is_not_its_matter() -> None:
    for story in (bad_batch(), game(0.01)):
        found = ask(rule, story.run("loss_G"), EventKind.SPIKE)
        assert silent(found)
        assert any("discriminator" in need for need in found.missing)


def test_the_fall_of_its_loss_is_the_event() -> None:
    story = game(1.0)
    story.more["loss_D"] = story.more["loss_D"] * story.step_to(0.02)
    assert holds(examine(rule, story.run("loss")))


def test_a_fall_that_leaves_it_in_the_game_is_none() -> None:
    story = game(1.0)
    story.more["loss_D"] = story.more["loss_D"] * story.step_to(0.4)
    assert ask(rule, story.run("loss"), EventKind.DROP).excluded
