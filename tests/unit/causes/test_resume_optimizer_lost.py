"""A lost optimizer state: right at first and then off, off at once, no resume, what the checkpoint holds."""

from __future__ import annotations

from cause_runs import AT, examine, holds, signals, silent, thrown_off

from forensics.causes.resume import resume_optimizer_lost as rule


def test_first_losses_right_then_a_rise() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run())
    assert holds(found)
    assert "loss" in signals(found.supporting)
    assert any("checkpoint" in need for need in found.missing)


def test_a_loss_that_is_off_at_once_speaks_against_it() -> None:
    story = thrown_off()
    story.resumed_at(AT)
    found = examine(rule, story.run())
    assert "loss" in signals(found.against)


def test_no_resume_is_excluded() -> None:
    assert examine(rule, thrown_off().run()).excluded


def test_a_resume_long_before_is_excluded() -> None:
    story = thrown_off()
    story.resumed_at(AT - 200)
    assert examine(rule, story.run()).excluded


def test_without_a_learning_rate_continuity_is_not_claimed() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run("lr"))
    assert not silent(found)
    assert "lr" not in signals(found.supporting)
