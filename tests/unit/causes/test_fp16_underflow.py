"""Gradients below float16: a tiny scale for long, a brief dip, another kind of event, a scale that is not logged."""

from __future__ import annotations

import numpy as np
from cause_events import ask
from cause_runs import Story, holds, silent

from forensics.causes.precision import fp16_underflow as rule
from forensics.model import EventKind

END = 1400


def tiny(since: int, *, vanishing: bool) -> Story:
    story = Story()
    t = np.arange(story.points)
    story.more["loss_scale"] = np.where(t >= since, 64.0, 65536.0)
    story.more["grad/layer0"] = 0.2 * np.where((t >= since) & vanishing, 1e-5, 1.0)
    return story


def test_a_tiny_scale_for_long_and_a_layer_without_gradient() -> None:
    found = ask(rule, tiny(300, vanishing=True).run(), EventKind.PLATEAU, END)
    assert holds(found)
    assert len(found.supporting) == 2


def test_a_tiny_scale_alone_is_weaker() -> None:
    found = ask(rule, tiny(300, vanishing=False).run(), EventKind.PLATEAU, END)
    assert found.log_odds < ask(rule, tiny(300, vanishing=True).run(), EventKind.PLATEAU, END).log_odds


def test_many_exact_zeros_are_the_same_evidence() -> None:
    story = tiny(300, vanishing=False)
    story.more["grads_zero_share"] = np.full(story.points, 0.3)
    assert any("30%" in e.text for e in ask(rule, story.run(), EventKind.PLATEAU, END).supporting)


def test_a_brief_dip_is_excluded_and_a_spike_is_not_its_matter() -> None:
    assert ask(rule, tiny(END - 200, vanishing=True).run(), EventKind.PLATEAU, END).excluded
    assert silent(ask(rule, tiny(300, vanishing=True).run(), EventKind.SPIKE, END))


def test_a_missing_loss_scale_is_asked_for() -> None:
    found = ask(rule, Story().run(), EventKind.PLATEAU, END)
    assert silent(found)
    assert any("loss scale" in need for need in found.missing)
