"""A surge of the embedding's gradient: before the loss, with it, a small part of the norm, flat, not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, examine, holds, silent, thrown_off

from forensics.causes.architecture import embedding_grad_surge as rule


def surge(lead: int = 4, share: float = 0.97) -> Story:
    story = thrown_off()
    noise = np.exp(0.1 * np.random.default_rng(1).normal(size=story.points))
    story.grad = Story().grad * story.step_to(30, at=AT - lead, until=AT + 10)
    story.more["grad/embed"] = 0.1 * noise
    story.more["grad/embed"][AT - lead : AT + 10] = share * story.grad[AT - lead : AT + 10]
    return story


def test_a_surge_that_leads_the_loss() -> None:
    found = examine(rule, surge().run())
    assert holds(found)
    assert "4 steps before" in found.supporting[0].text
    assert "97%" in found.supporting[1].text


def test_a_surge_with_the_loss_is_no_lead() -> None:
    found = examine(rule, surge(lead=0).run())
    assert found.against
    assert not holds(found)


def test_a_small_part_of_the_norm_speaks_against_it() -> None:
    assert examine(rule, surge(share=0.4).run()).against


def test_a_flat_embedding_is_excluded() -> None:
    story = surge()
    story.more["grad/embed"] = 0.1 * np.exp(0.1 * np.random.default_rng(1).normal(size=story.points))
    assert examine(rule, story.run()).excluded


def test_a_missing_embedding_is_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("embedding" in need for need in found.missing)
