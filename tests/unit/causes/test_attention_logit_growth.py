"""Growth of attention logits: past the alarm, small ones, and logits that are not logged."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story, bad_batch, examine, holds, signals, silent, thrown_off

from forensics.causes.architecture import attention_logit_growth as rule


def growing(start: float) -> Story:
    story = thrown_off()
    away = np.clip(np.arange(story.points) - (AT - 300), 0, None)
    story.more["attn_logit_max"] = start * np.exp(away / 100)
    return story


def test_logits_that_pass_the_alarm() -> None:
    found = examine(rule, growing(5.0).run(), near=AT)
    assert holds(found)
    assert "attn_logit_max" in signals(found.supporting)


def test_small_logits_are_excluded() -> None:
    story = bad_batch()
    story.more["attn_logit_max"] = np.full(story.points, 12.0)
    assert examine(rule, story.run()).excluded


def test_growth_that_comes_after_the_event_is_excluded() -> None:
    story = bad_batch(300)
    story.more["attn_logit_max"] = growing(5.0).more["attn_logit_max"]
    assert silent(examine(rule, story.run(), near=300))


def test_missing_logits_are_asked_for() -> None:
    found = examine(rule, thrown_off().run())
    assert silent(found)
    assert any("attention logit" in need for need in found.missing)
