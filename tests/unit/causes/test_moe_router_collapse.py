"""A router that settles on few experts: unequal loads, balanced ones, a spike, loads that are not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, new_data, silent

from forensics.causes.architecture import moe_router_collapse as rule
from forensics.model import EventKind


def experts(*loads: float) -> Story:
    story = new_data()
    rng = np.random.default_rng(1)
    for number, load in enumerate(loads):
        story.more[f"expert_{number}_load"] = load * np.exp(0.02 * rng.normal(size=story.points))
    story.more["aux_loss"] = 0.01 * np.exp(np.arange(story.points) / 500) * np.exp(0.02 * rng.normal(size=story.points))
    return story


def test_one_expert_gets_nearly_everything() -> None:
    found = ask(rule, experts(0.86, *[0.02] * 7).run(), EventKind.LEVEL_SHIFT)
    assert holds(found)
    assert "one of 8 experts" in found.supporting[0].text
    assert any(e.signal == "aux_loss" for e in found.supporting)


def test_idle_experts_are_seen() -> None:
    found = ask(rule, experts(0.33, 0.33, 0.33, 0.005, 0.005).run(), EventKind.PLATEAU)
    assert "40% of 5 experts were idle" in found.supporting[0].text


def test_balanced_loads_are_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, experts(0.3, 0.25, 0.2, 0.25).run(), EventKind.LEVEL_SHIFT).excluded
    assert silent(ask(rule, experts(0.86, *[0.02] * 7).run(), EventKind.SPIKE))


def test_missing_loads_are_asked_for() -> None:
    found = ask(rule, new_data().run(), EventKind.LEVEL_SHIFT)
    assert silent(found)
    assert any("every expert" in need for need in found.missing)
