"""The state of clipping: nothing logged, constants, norms after clipping, off, rare, often, chronic."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate.clipping import State, clipping
from forensics.correlate.profile import profile
from forensics.model import FloatArray, Run, Signal
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared, prepare
from forensics.vocabulary import Role, assign_roles


def norms(seed: int = 0) -> FloatArray:
    return 0.5 * np.exp(0.3 * np.random.default_rng(seed).normal(size=1000))


def prepared(values: FloatArray) -> Prepared:
    return prepare(Signal("grad_norm", np.arange(len(values), dtype=np.int64), values, role=Role.GRAD_NORM))


def test_nothing_logged() -> None:
    assert clipping(None, 1.0).state is State.UNKNOWN
    assert clipping(prepared(norms()[:20]), 1.0).state is State.UNKNOWN
    assert clipping(prepared(norms()), None).state is State.UNKNOWN


def test_a_constant_is_no_ceiling() -> None:
    assert clipping(prepared(np.full(200, 1.0)), None).state is State.UNKNOWN


def test_a_threshold_of_zero_is_off() -> None:
    assert clipping(prepared(norms()), None, configured_off=True).state is State.OFF


@pytest.mark.parametrize("configured", [None, 0.6])
def test_norms_after_clipping(configured: float | None) -> None:
    found = clipping(prepared(norms().clip(max=0.6)), configured)
    assert (found.state, found.share) == (State.AFTER_CLIP, None)
    assert found.threshold == pytest.approx(0.6)


@pytest.mark.parametrize(("threshold", "state"), [(2.0, State.RARE), (0.75, State.OFTEN), (0.4, State.CHRONIC)])
def test_shares(threshold: float, state: State) -> None:
    found = clipping(prepared(norms()), threshold)
    assert found.state is state
    assert found.share is not None
    assert f"{threshold:g}" in found.sentence


def test_the_warmup_does_not_count() -> None:
    values = norms()
    values[:300] *= 10
    assert clipping(prepared(values), 2.0).state is State.OFTEN
    assert clipping(prepared(values), 2.0, skip=300).state is State.RARE


def test_the_profile_of_a_run() -> None:
    steps = np.arange(1000, dtype=np.int64)
    signals = assign_roles([Signal("grad_norm", steps, norms()), Signal("lr", steps, np.linspace(1e-3, 0, 1000))])
    run = Run("run", "run", (), signals, (), {"max_grad_norm": 2.0})
    found = profile(run, Curves(run))
    assert "clipped at 2" in found["gradient clipping"]
    assert "the configuration does not say" in found["learning rate"]
    assert profile(Run("run", "run", (), ()), Curves(Run("run", "run", (), ()))) == {}
