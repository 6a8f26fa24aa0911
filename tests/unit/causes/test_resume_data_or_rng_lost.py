"""Lost data order: a calm gradient after a resume, an upset one, no resume, composition not logged."""

from __future__ import annotations

from cause_runs import AT, Story, examine, holds, signals, thrown_off

from forensics.causes.resume import resume_data_or_rng_lost as rule


def other_data() -> Story:
    story = Story()
    story.loss = story.loss * story.fade(0.4, 30)
    return story


def test_a_rise_with_a_calm_gradient() -> None:
    story = other_data()
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert holds(found)
    assert {"loss", "grad_norm"} <= signals(found.supporting)


def test_an_upset_gradient_speaks_against_it() -> None:
    story = thrown_off(surge=6, length=60)
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert "grad_norm" in signals(found.against)


def test_no_resume_is_excluded() -> None:
    assert examine(rule, other_data().run()).excluded


def test_the_composition_is_asked_for_and_a_missing_norm_claims_nothing() -> None:
    story = other_data()
    story.resumed_at(AT)
    found = examine(rule, story.run("grad_norm", "batch_id"))
    assert any("batch ids" in need for need in found.missing)
    assert "grad_norm" not in signals(found.supporting)
