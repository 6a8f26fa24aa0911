"""A chip that errs again and again: one node each time, one rank each time, scattered events, nothing logged per rank."""

from __future__ import annotations

import numpy as np
from cause_runs import Story, bad_batch, examine, holds, silent

from forensics.causes.hardware import sdc_persistent as rule

STEPS = (300, 500, 700, 900, 1100)


def recurring(*steps: int) -> Story:
    story = bad_batch(*(steps or STEPS))
    story.batch = np.arange(story.points, dtype=np.float64)
    return story


def on_node(at: tuple[int, ...] = STEPS) -> Story:
    story = recurring(*STEPS)
    node = np.random.default_rng(1).integers(0, 16, story.points).astype(np.float64)
    node[node == 3] = 4
    node[list(at)] = 3
    story.more["node"] = node
    return story


def per_rank(same: bool = True) -> Story:
    story = recurring(*STEPS)
    rng = np.random.default_rng(2)
    for rank in range(6):
        story.more[f"loss_rank{rank}"] = 2 * np.exp(0.03 * rng.normal(size=story.points))
    for k, step in enumerate(STEPS):
        story.more[f"loss_rank{2 if same else k}"][step] *= 4
    return story


def test_events_only_with_one_node() -> None:
    found = examine(rule, on_node().run())
    assert holds(found)
    assert "node 3" in found.supporting[0].text


def test_events_on_all_nodes_are_no_sign() -> None:
    assert silent(examine(rule, on_node(at=STEPS[:1]).run()))


def test_the_same_rank_every_time() -> None:
    found = examine(rule, per_rank().run())
    assert holds(found)
    assert any("loss_rank2" in e.text for e in found.supporting)


def test_another_rank_each_time_speaks_against_it() -> None:
    found = examine(rule, per_rank(same=False).run())
    assert not holds(found)
    assert any("another rank" in e.text for e in found.against)


def test_a_batch_that_explains_it_speaks_against_it() -> None:
    story = on_node()
    story.batch[list(STEPS)] = 7
    assert examine(rule, story.run()).log_odds < examine(rule, on_node().run()).log_odds


def test_two_events_are_too_few() -> None:
    assert silent(examine(rule, recurring(300, 900).run()))


def test_nodes_that_are_not_logged_are_asked_for() -> None:
    found = examine(rule, recurring().run())
    assert silent(found)
    assert any("node" in need for need in found.missing)
