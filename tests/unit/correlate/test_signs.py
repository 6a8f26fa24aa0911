"""Signs that several causes ask about: what a gradient leads by, what the errors explain, what was learned again."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate import signs
from forensics.correlate.view import View
from forensics.detectors import find_incidents
from forensics.model import FloatArray, Run, Signal, SourceInfo
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles

N, AT = 600, 300
STEPS = np.arange(N)


def view(loss: FloatArray, grad: FloatArray, every: int = 1, **more: FloatArray) -> View:
    named = {"loss": loss, "grad_norm": grad, **more}
    signals = assign_roles([Signal(name, STEPS * every, values) for name, values in named.items()])
    run = Run("run", "run", (SourceInfo("log.csv", "csv", N),), signals)
    incidents = find_incidents(run).incidents
    incident = min(incidents, key=lambda i: abs(i.event.onset_step - AT * every))
    return View(run, Curves(run, incident.attempts), incident, incidents)


def curves(loss: float, grad: float, fade: float = np.inf) -> tuple[FloatArray, FloatArray]:
    """Loss and gradient norm jump by factors and fade away over some points."""
    rng = np.random.default_rng(0)
    left = np.where(STEPS >= AT, np.exp(-np.maximum(STEPS - AT, 0) / fade), 0.0)
    falling = 1.0 + 4.0 * np.exp(-STEPS / 40)
    return falling * (1 + (loss - 1) * left) * np.exp(rng.normal(0, 0.02, N)), (1 + (grad - 1) * left) * np.exp(rng.normal(0, 0.1, N))


def test_a_gradient_that_rose_long_before_at_a_coarse_cadence_is_no_precursor() -> None:
    loss, grad = curves(3, 1)
    grad = grad * np.where(STEPS >= AT - 8, 6.0, 1.0)
    assert signs.precursor(view(loss, grad, every=10)) is False
    assert signs.precursor(view(loss, grad)) is True


@pytest.mark.parametrize(("loss", "grad", "explained"), [(40, 30, True), (2, 30, False)])
def test_large_errors_explain_a_large_gradient(loss: float, grad: float, explained: bool) -> None:
    assert signs.explained_by_loss(view(*curves(loss, grad))) is explained


@pytest.mark.parametrize(("fade", "held"), [(np.inf, True), (40.0, False)])
def test_what_stays_was_not_learned_again(fade: float, held: bool) -> None:
    assert signs.nothing_relearned(view(*curves(2.5, 2, fade))) is held


@pytest.mark.parametrize(("factor", "back"), [(5.0, True), (2.0, False), (12.0, False)])
def test_the_level_before_training(factor: float, back: bool) -> None:
    assert signs.back_at_start(view(*curves(factor, 1.0))) is back


def test_a_scale_that_had_jumped() -> None:
    scale = np.full(N, 1024.0)
    scale[AT - 2 : AT] = 2.0**30
    scale[AT : AT + 20] = 2.0 ** np.arange(29, 9, -1)
    assert signs.scale_had_jumped(view(*curves(1, 1), loss_scale=scale)) is True
    assert signs.scale_had_jumped(view(*curves(3, 1))) is None
