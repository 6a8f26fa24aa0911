"""Missing clipping: off, on, no surge, threshold unknown, norm not logged."""

from __future__ import annotations

from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent, thrown_off

from forensics.causes.optimization import grad_clip_missing as rule


def test_a_surge_before_the_loss_with_clipping_off() -> None:
    story = Story()
    story.grad = story.grad * story.fade(40, 30, at=AT - 2)
    story.loss = story.loss * story.fade(0.7, 30)
    story.config = {"max_grad_norm": 0}
    found = examine(rule, story.run())
    assert holds(found)
    assert "grad_norm" in signals(found.supporting)


def test_a_clip_that_bounds_the_surge_speaks_against_it() -> None:
    story = thrown_off(surge=40)
    story.config = {"max_grad_norm": 1.0}
    found = examine(rule, story.run())
    assert "grad_norm" in signals(found.against)
    assert not holds(found)


def test_a_gradient_without_a_surge_is_excluded() -> None:
    assert examine(rule, bad_batch().run()).excluded


def test_an_unknown_threshold_is_asked_for() -> None:
    found = examine(rule, thrown_off(surge=40).run())
    assert any("max_grad_norm" in need for need in found.missing)


def test_a_missing_gradient_norm_is_asked_for() -> None:
    found = examine(rule, thrown_off(surge=40).run("grad_norm"))
    assert silent(found)
    assert any("gradient norm" in need for need in found.missing)


def test_norms_after_clipping_say_nothing_of_surges() -> None:
    story = thrown_off(surge=40)
    story.grad = story.grad.clip(max=1.0)
    story.grad[::5] = 1.0
    found = examine(rule, story.run())
    assert found.excluded is None or "after clipping" in found.excluded or "did not surge" in found.excluded
    assert silent(found)
