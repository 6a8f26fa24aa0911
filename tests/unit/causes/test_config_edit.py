"""A setting changed at a restart: bookkeeping only, unknown settings, weights that were wrong already, no restart, none logged."""

from __future__ import annotations

from dataclasses import replace

from cause_runs import AT, Story, examine, holds, silent, thrown_off

from forensics.causes.resume import config_edit as rule
from forensics.model import Run

BEFORE: dict[str, object] = {"lr": 3e-4, "clip": 1.0, "flavour": "plain", "output_dir": "a", "torch_version": "2.5"}


def resumed(story: Story, at: int = AT - 3, **changed: object) -> Run:
    story.resumed_at(at)
    return replace(story.run(), attempt_configs=(BEFORE, {**BEFORE, **changed}))


def test_settings_that_are_not_logged_per_attempt_are_asked_for() -> None:
    story = thrown_off()
    story.resumed_at(AT - 3)
    found = examine(rule, story.run())
    assert silent(found)
    assert any("every attempt" in need for need in found.missing)


def test_no_restart_is_excluded() -> None:
    assert examine(rule, thrown_off().run()).excluded


def test_equal_settings_and_new_folders_are_excluded() -> None:
    assert examine(rule, resumed(thrown_off())).excluded
    assert examine(rule, resumed(thrown_off(), output_dir="b", torch_version="2.6")).excluded


def test_a_loss_that_was_off_before_any_update_speaks_against_it() -> None:
    found = examine(rule, resumed(thrown_off(), at=AT, clip=0.0))
    assert any("before any update" in e.text for e in found.against)


def test_a_clip_that_was_switched_off() -> None:
    found = examine(rule, resumed(thrown_off(), clip=0.0))
    assert holds(found)
    assert "clip from 1.0 to 0.0" in found.supporting[0].text
    assert "clip back to 1.0" in found.remedy


def test_a_setting_nobody_knows_weighs_less() -> None:
    odd, known = examine(rule, resumed(thrown_off(), flavour="bold")), examine(rule, resumed(thrown_off(), clip=0.0))
    assert not silent(odd)
    assert odd.log_odds < known.log_odds
