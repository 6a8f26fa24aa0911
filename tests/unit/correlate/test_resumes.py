"""What was continuous across a restart: nothing on one side, odd values, what a schedule does by itself, and every kind of loss."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate.resumes import Across, Continuity, Mark, continuity
from forensics.model import FloatArray, Signal
from forensics.primitives.prepared import prepare
from forensics.vocabulary import Role

POINTS, AT = 400, 200


def across(**changed: FloatArray) -> Continuity:
    rng = np.random.default_rng(0)
    t = np.arange(POINTS)
    usual: dict[str, FloatArray] = {
        Role.LR: 1e-3 * (1 - t / POINTS),
        Role.LOSS_SCALE: np.full(POINTS, 65536.0),
        Role.BATCH_ID: t.astype(np.float64),
        Role.LOSS: 2 * np.exp(0.02 * rng.normal(size=POINTS)),
        Role.GRAD_NORM: 0.5 * np.exp(0.1 * rng.normal(size=POINTS)),
    }
    usual |= {Role(k): v for k, v in changed.items()}
    steps = np.arange(POINTS, dtype=np.int64)
    return continuity({k: prepare(Signal(k, steps[: len(v)], v, role=k)) for k, v in usual.items()}, AT, Mark.ATTEMPT)


def after(values: FloatArray, factor: float) -> FloatArray:
    return np.where(np.arange(len(values)) >= AT, values * factor, values)


def test_nothing_on_one_side() -> None:
    found = across(lr=np.full(AT, 1e-3))
    assert found.fact(Role.LR) is None
    assert found.changed(Role.LR) is None


def test_nothing_logged() -> None:
    found = continuity(dict.fromkeys((Role.LR, Role.LOSS)), AT, Mark.GAP)
    assert found.facts == ()
    assert "nothing is logged" in found.sentence


def test_infinite_and_constant_values_say_nothing_wrong() -> None:
    found = across(grad_norm=np.full(POINTS, np.inf), loss=np.full(POINTS, 2.0), lr=np.zeros(POINTS))
    assert found.fact(Role.GRAD_NORM) is None
    assert found.changed(Role.LOSS) is False
    assert found.changed(Role.LR) is False


def test_a_clean_resume() -> None:
    found = across()
    assert [f.across for f in found.facts] == [Across.CONTINUED] * 5
    assert "the learning rate went on at 0.0005" in found.sentence


def test_a_schedule_over_a_gap_is_no_jump() -> None:
    steps = np.concatenate([np.arange(AT), np.arange(AT + 100, POINTS + 100)]).astype(np.int64)
    lr = 1e-3 * (1 - steps / 600)
    found = continuity({Role.LR: prepare(Signal("lr", steps, lr, role=Role.LR))}, AT + 100, Mark.GAP)
    assert found.changed(Role.LR) is False


def test_ids_without_an_order_are_only_told_from_repeats() -> None:
    ids = np.random.default_rng(1).permutation(10_000)[:POINTS].astype(np.float64)
    assert across(bs=ids, batch_id=ids).changed(Role.BATCH_ID) is None
    ids[AT] = ids[5]
    found = across(batch_id=ids)
    assert found.changed(Role.BATCH_ID)
    assert "at step 5" in found.sentence


@pytest.mark.parametrize(
    ("role", "values", "words"),
    [
        ("lr", after(1e-3 * (1 - np.arange(POINTS) / POINTS), 2.0), "learning rate went from"),
        ("loss_scale", after(np.full(POINTS, 1024.0), 64.0), "loss scale went from 1024 to 65536"),
        ("batch_id", np.concatenate([np.arange(AT), np.arange(900, 900 + POINTS - AT)]).astype(np.float64), "jumped from 199 to 900"),
        ("batch_id", np.concatenate([np.arange(AT), np.arange(POINTS - AT)]).astype(np.float64), "began again"),
        ("loss", after(np.full(POINTS, 2.0) * np.exp(0.02 * np.random.default_rng(3).normal(size=POINTS)), 1.5), "the first loss was off"),
        ("grad_norm", after(0.5 * np.exp(0.1 * np.random.default_rng(4).normal(size=POINTS)), 2.0), "gradient norm settled at"),
    ],
)
def test_what_was_lost(role: str, values: FloatArray, words: str) -> None:
    found = across(**{role: values})
    assert found.changed(Role(role))
    assert words in found.sentence
    assert [f.role for f in found.facts if f.across is Across.CHANGED] == [role]
