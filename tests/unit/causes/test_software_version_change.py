"""Software changed at a restart: equal versions, settings changed too, no restart, none logged, and a gradient norm that steps."""

from __future__ import annotations

from dataclasses import replace

from cause_runs import AT, Story, examine, holds, silent, thrown_off

from forensics.causes.resume import software_version_change as rule
from forensics.model import Run

BEFORE: dict[str, object] = {"lr": 3e-4, "torch_version": "2.5.1", "git_commit": "aaaa"}


def resumed(story: Story, **changed: object) -> Run:
    story.resumed_at(AT - 3)
    return replace(story.run(), attempt_configs=(BEFORE, {**BEFORE, **changed}))


def stepped() -> Story:
    story = thrown_off(surge=0.0)
    story.grad = story.grad * story.step_to(1.5, at=AT - 3)
    return story


def test_versions_that_are_not_logged_are_asked_for() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run())
    assert silent(found)
    assert any("versions" in need for need in found.missing)


def test_no_restart_is_excluded() -> None:
    assert examine(rule, thrown_off().run()).excluded


def test_equal_versions_are_excluded() -> None:
    assert examine(rule, resumed(stepped())).excluded
    assert examine(rule, resumed(stepped(), lr=1e-3)).excluded


def test_a_new_version_and_a_gradient_norm_that_steps() -> None:
    found = examine(rule, resumed(stepped(), torch_version="2.6.0"))
    assert holds(found)
    assert "torch_version from 2.5.1 to 2.6.0" in found.supporting[0].text
    assert any("grad_norm stepped" in e.text for e in found.supporting)
    assert found.log_odds > examine(rule, resumed(thrown_off(surge=0.0), torch_version="2.6.0")).log_odds


def test_a_setting_changed_at_the_same_restart_speaks_against_it() -> None:
    both, alone = examine(rule, resumed(stepped(), torch_version="2.6.0", lr=1e-3)), examine(rule, resumed(stepped(), torch_version="2.6.0"))
    assert both.log_odds < alone.log_odds
