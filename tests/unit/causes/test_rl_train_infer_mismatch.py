"""Two engines that disagree: more and more before the crash, a flat harmless gap, a flat large one, not logged."""

from __future__ import annotations

from cause_events import ask
from cause_runs import holds, signals, silent
from rl_runs import RlStory

from forensics.causes.rl import rl_train_infer_mismatch as rule
from forensics.model import EventKind


def mismatch(level: float, factor: float) -> RlStory:
    story = RlStory()
    story.more["rollout_train_mismatch"] = level * story.wiggle(0.05) * story.grow(factor)
    story.grad = story.grad * story.fade(30, 10)
    story.crash()
    return story


def test_a_gap_that_grew_before_the_crash() -> None:
    found = ask(rule, mismatch(5e-4, 30).run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert {"grad_norm", "reward"} <= signals(found.supporting)


def test_a_flat_small_gap_is_excluded_and_a_flat_large_one_only_a_hint() -> None:
    assert ask(rule, mismatch(5e-4, 1).run(), EventKind.LEVEL_SHIFT).excluded
    assert ask(rule, mismatch(0.02, 1).run(), EventKind.LEVEL_SHIFT).log_odds == 0.5


def test_a_missing_gap_is_asked_for() -> None:
    found = ask(rule, RlStory().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("rollout engine" in need for need in found.missing)
