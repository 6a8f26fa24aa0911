"""A jump of the learning rate: one that explains, a schedule that is smooth, a rate that is not logged."""

from __future__ import annotations

from cause_runs import bad_batch, examine, holds, lr_jump, signals, silent

from forensics.causes.optimization import lr_rewarm_or_jump as rule


def test_a_tenfold_learning_rate_explains_the_rise() -> None:
    found = examine(rule, lr_jump().run())
    assert holds(found)
    assert {"lr", "loss"} <= signals(found.supporting)
    assert "900" in found.remedy


def test_a_smooth_schedule_is_excluded() -> None:
    found = examine(rule, bad_batch().run())
    assert found.excluded
    assert silent(found)


def test_a_planned_drop_is_no_jump() -> None:
    story = bad_batch()
    story.lr = story.lr * story.step_to(0.1)
    assert silent(examine(rule, story.run()))


def test_a_missing_learning_rate_is_asked_for() -> None:
    found = examine(rule, lr_jump().run("lr"))
    assert silent(found)
    assert any("learning rate" in need for need in found.missing)
