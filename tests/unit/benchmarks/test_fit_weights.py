"""The fit of the weights: it moves what the faults speak about, stays where it is held, and judges on kinds it has not seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forensics.correlate import weights
from tests.benchmarks.fit_weights import BASE, NAMES, Candidate, Fault, Model, collect

FIXTURES = Path(__file__).parents[3] / "fixtures/labelled/labels.json"


def candidate(cause: str, **counts: float) -> Candidate:
    made = np.zeros(len(NAMES))
    made[BASE] = 1
    for name, count in counts.items():
        made[NAMES.index(name)] = count
    return Candidate(cause, made, 0.0)


def fault(kind: str, *, right: str) -> Fault:
    """One cause has a strong sign, another two weak ones."""
    return Fault(kind, frozenset({right}), ((candidate("a", STRONG=1), candidate("b", HINT=2)),))


def test_no_candidate_is_no_answer() -> None:
    model = Model([fault("x", right="a"), Fault("y", frozenset({"a"}), ((),))])
    assert model.first(Fault("y", frozenset({"a"}), ((),)), model.hand) == ("", 0.0)


def test_scores_are_those_of_the_ranking() -> None:
    model = Model([fault("x", right="a")])
    odds = weights.SHARPNESS * np.array([weights.BASE + weights.STRONG, weights.BASE + 2 * weights.HINT, weights.UNKNOWN_CAUSE])
    assert model.scores(fault("x", right="a").events[0], model.hand) == pytest.approx(np.exp(odds) / np.exp(odds).sum())


def test_a_strong_pull_keeps_the_table() -> None:
    faults = [fault("x", right="b")] * 5
    model = Model(faults)
    assert model.fit(faults, 1e6, range(len(NAMES))) == pytest.approx(model.hand, abs=1e-3)


def test_faults_that_contradict_a_weight_lower_it() -> None:
    faults = [fault("x", right="b")] * 20
    model = Model(faults)
    fitted = model.fit(faults, 0.1, range(len(NAMES)))
    assert fitted[NAMES.index("STRONG")] < weights.STRONG
    assert model.loss(faults, fitted) < model.loss(faults, model.hand)
    assert model.judge(faults, [fitted] * 20)[1] == 1.0


def test_faults_of_the_fixtures_are_collected() -> None:
    faults = collect(FIXTURES)
    assert faults
    assert all(f.accept and f.events for f in faults)


def test_the_gradient_is_that_of_the_loss() -> None:
    faults = [fault("x", right="b"), fault("y", right="a"), fault("z", right="c")]
    model = Model(faults)
    values = model.hand + 0.1
    _, slope = model.loss_and_slope(model.prepare(faults), values)
    steps = 1e-6 * np.eye(len(values))
    by_difference = [(model.loss(faults, values + s) - model.loss(faults, values - s)) / 2e-6 for s in steps]
    assert slope == pytest.approx(by_difference, abs=1e-6)
