"""Repetitive documents: an easy batch with a large gradient, a hard one, a calm gradient, a batch that comes back, no gradient."""

from __future__ import annotations

from cause_runs import AT, Story, bad_batch, examine, holds, silent

from forensics.causes.data import repeated_ngram_docs as rule


def easy(*steps: int, dip: float = 0.85) -> Story:
    story = Story()
    for step in steps or (AT,):
        story.grad[step : step + 2] *= 8
        story.loss[step] *= dip
        story.loss = story.loss * story.fade(0.5, 5, at=step + 1)
        story.batch[step : step + 2] = 7, 8
    return story


def test_an_easy_batch_whose_gradient_surges() -> None:
    found = examine(rule, easy().run())
    assert found.log_odds == 1
    assert "easy" in found.supporting[0].text
    assert str(AT) in found.remedy


def test_the_same_batch_again_makes_it_strong() -> None:
    found = examine(rule, easy(400, AT).run(), near=AT)
    assert holds(found)
    assert found.log_odds == 3


def test_a_hard_batch_is_no_evidence() -> None:
    assert silent(examine(rule, easy(dip=1.0).run()))


def test_a_calm_gradient_excludes_it() -> None:
    story = bad_batch()
    story.grad = Story().grad
    assert examine(rule, story.run()).excluded


def test_a_missing_gradient_is_asked_for() -> None:
    found = examine(rule, bad_batch().run("grad_norm"))
    assert silent(found)
    assert any("gradient norm" in need for need in found.missing)
