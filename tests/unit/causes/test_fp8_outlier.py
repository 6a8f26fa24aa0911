"""Outliers of float8 runs: a jump with the event, none, bf16, a precision that is not logged."""

from __future__ import annotations

from cause_runs import AT, Story, examine, holds, silent, thrown_off

from forensics.causes.precision import fp8_outlier as rule


def jump(factor: float, **config: object) -> Story:
    story = thrown_off()
    story.more["act_max/down_proj"] = 20 * Story(seed=3).grad * story.step_to(factor, at=AT - 1, until=AT + 3)
    story.config |= config
    return story


def test_a_jump_in_a_float8_run() -> None:
    found = examine(rule, jump(40, use_fp8=True).run())
    assert holds(found)
    assert len(found.supporting) == 2


def test_no_jump_and_other_precisions_are_excluded() -> None:
    assert examine(rule, jump(1, precision="fp8-mixed").run()).excluded
    assert examine(rule, jump(40, precision="bf16").run()).excluded
    assert examine(rule, jump(40, fp8=False).run()).excluded


def test_a_missing_precision_is_asked_for() -> None:
    found = examine(rule, jump(40).run())
    assert silent(found)
    assert any("precision" in need for need in found.missing)
