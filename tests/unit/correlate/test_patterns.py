"""What alarms have in common: too few, all over the place, odd signals, and every kind of thing they can agree on."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate.patterns import Pattern, Thing, patterns
from forensics.model import FloatArray, Run, Signal
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles

POINTS = 4000
SCATTERED = (211, 805, 1333, 1790, 2411, 2999, 3502)


def found(onsets: tuple[int, ...], config: dict[str, object] | None = None, **signals: FloatArray) -> dict[Thing, Pattern]:
    rng = np.random.default_rng(0)
    steps = np.arange(POINTS, dtype=np.int64)
    named = {"loss": 2 * np.exp(0.02 * rng.normal(size=POINTS)), **signals}
    run = Run("run", "run", (), assign_roles([Signal(n, steps[: len(v)], v) for n, v in named.items()]), (), config or {})
    return {p.thing: p for p in patterns(run, Curves(run), onsets)}


def constant_by_block(length: int) -> FloatArray:
    return (np.arange(POINTS) // length).astype(np.float64)


def test_nothing_logged() -> None:
    empty = Run("run", "run", (), ())
    assert patterns(empty, Curves(empty), (1, 2, 3)) == ()


def test_two_events_have_nothing_in_common() -> None:
    assert found((400, 500), node=constant_by_block(100)) == {}


def test_scattered_events_have_nothing_in_common() -> None:
    t = np.arange(POINTS)
    config: dict[str, object] = {"eval_steps": 250, "save_steps": 400}
    assert found(SCATTERED, config, node=t % 7.0, shard_id=constant_by_block(500), epoch=t / 900, lr=1e-3 * (1 - t / POINTS)) == {}


@pytest.mark.parametrize("values", [np.full(POINTS, np.nan), np.zeros(POINTS), np.arange(POINTS, dtype=np.float64), np.full(3, 1.0)])
def test_signals_that_name_nothing(values: FloatArray) -> None:
    assert found((100, 200, 300, 400), node=values, shard_id=values) == {}


def test_odd_intervals_are_passed_over() -> None:
    config: dict[str, object] = {"eval_steps": 0, "save_steps": "often", "eval_interval": True, "save_interval": -5, "ckpt_interval": 2}
    assert found((100, 200, 300), config) == {}


def test_a_shard() -> None:
    shard = (np.arange(POINTS) // 10 % 40).astype(np.float64)
    onsets = tuple(int(s) for s in np.flatnonzero(shard == 7)[::17])
    pattern = found(onsets, shard_id=shard)[Thing.SHARD]
    assert (pattern.value, pattern.hits) == (7, len(onsets))
    assert "shard_id 7" in pattern.text
    assert "one in a million" in pattern.text


def test_a_node_among_other_events() -> None:
    node = np.random.default_rng(1).integers(0, 16, POINTS).astype(np.float64)
    onsets = (*np.flatnonzero(node == 3)[:200:30].tolist(), 77, 2222)
    assert found(onsets, node=node)[Thing.PLACE].value == 3


def test_a_batch() -> None:
    ids = np.random.default_rng(2).permutation(POINTS).astype(np.float64)
    onsets = (400, 1400, 2400)
    ids[list(onsets)] = 4242
    assert found(onsets, batch_id=ids)[Thing.BATCH].value == 4242


def test_the_high_part_of_the_schedule() -> None:
    lr = np.where(np.arange(POINTS) < 800, 1e-3, 1e-4)
    assert Thing.LR_HIGH in found((100, 220, 300, 410, 520, 700), lr=lr)
    assert Thing.LR_HIGH not in found((100, 1220, 2300, 3410, 1520, 2700), lr=lr)


def test_the_warmup() -> None:
    lr = 1e-3 * np.minimum((np.arange(POINTS) + 1) / 400, 1) * (1 - np.arange(POINTS) / POINTS)
    assert Thing.LR_PHASE in found((50, 120, 200, 330), lr=lr)


def test_the_place_in_the_epoch() -> None:
    epoch = np.arange(POINTS) / 500
    pattern = found(tuple(500 * k + 123 for k in range(8)), epoch=epoch)[Thing.EPOCH]
    assert pattern.value == pytest.approx(123 / 500, abs=0.01)
    assert Thing.EPOCH not in found((100, 200, 300), epoch=np.floor(epoch))
    assert Thing.EPOCH not in found((100, 200, 300), epoch=np.arange(POINTS) / 5000)


def test_an_interval_of_the_configuration() -> None:
    pattern = found((251, 501, 1251, 2001), {"training.eval_steps": 250})[Thing.INTERVAL]
    assert "eval_steps = 250" in pattern.text


def test_growth_of_the_loss_scale() -> None:
    scale = 1024.0 * 2.0 ** (np.arange(POINTS) // 1000)
    assert Thing.SCALE in found((1004, 2002, 3010), loss_scale=scale)
    assert Thing.SCALE not in found((1304, 2402, 3510), loss_scale=scale)


def test_many_signals_make_no_pattern_of_chance() -> None:
    rng = np.random.default_rng(5)
    many = {f"node_{k}": rng.integers(0, 8, POINTS).astype(np.float64) for k in range(60)}
    assert found(SCATTERED, **many) == {}
