"""What holds for all detectors: silence where there is nothing to say."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from forensics.detectors import BUILTIN, find_incidents, non_finite
from forensics.model import Event, EventKind, Run, Severity
from forensics.primitives.curves import Curves
from tests.unit.synthetic import curves_of, falling, run_of

NAMES = ("loss", "grad_norm", "lr", "loss_scale", "batch_size", "batch_id", "epoch", "val_loss", "attn_logit_max", "tokens_per_sec")
QUIET = [d for d in BUILTIN if d is not non_finite]


def names(module: ModuleType) -> str:
    return str(module.NAME)


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
def test_shape(detector: ModuleType) -> None:
    assert detector.__name__.rpartition(".")[2] == detector.NAME
    assert detector.__doc__


def test_names_are_unique() -> None:
    assert len({d.NAME for d in BUILTIN}) == len(BUILTIN)


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
@pytest.mark.parametrize("points", [0, 1, 2, 5])
def test_few_points(detector: ModuleType, points: int) -> None:
    assert detector.detect(curves_of({name: np.full(points, 2.0) for name in NAMES})) == []


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
def test_nothing_logged(detector: ModuleType) -> None:
    assert detector.detect(curves_of({})) == []


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-30, 1e30])
def test_constant(detector: ModuleType, value: float) -> None:
    signals: dict[str, object] = {name: np.full(60, value) for name in NAMES}
    signals["batch_id"] = np.arange(60)
    assert detector.detect(curves_of(signals)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("detector", QUIET, ids=names)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nothing_finite(detector: ModuleType, value: float) -> None:
    assert detector.detect(curves_of({name: np.full(200, value) for name in NAMES})) == []


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
def test_heavy_tail(detector: ModuleType) -> None:
    """Two of twenty may have a fluctuation that looks real; an info is no alarm."""
    alarms = 0
    for seed in range(20):
        signals = {"loss": falling(900, seed, tail=2.5), "grad_norm": falling(900, seed + 100, 0.2, tail=2.5), "lr": np.full(900, 1e-3)}
        alarms += any(e.severity is not Severity.INFO for e in detector.detect(curves_of(signals)))
    assert alarms <= 2


def healthy(seed: int) -> Run:
    rng = np.random.default_rng(seed)
    steps = np.arange(900)
    return run_of(
        {
            "loss": falling(900, seed),
            "val_loss": falling(900, seed + 50),
            "grad_norm": np.exp(rng.normal(0, 0.2, 900)) * (1 + 4 * np.exp(-steps / 30)),
            "lr": 1e-3 * np.minimum((steps + 1) / 100, 1) * 0.5 * (1 + np.cos(np.pi * steps / 900)),
            "loss_scale": 65536.0 / 2 ** (steps // 400),
            "batch_id": steps,
            "epoch": steps / 300,
            "tokens_per_sec": 1e5 * np.exp(rng.normal(0, 0.1, 900)),
        }
    )


def test_healthy_runs_have_no_alarm() -> None:
    alarms = [i.event for seed in range(20) for i in find_incidents(healthy(seed)).incidents if i.event.severity is not Severity.INFO]
    assert len(alarms) <= 1, alarms


@pytest.mark.parametrize("detector", BUILTIN, ids=names)
def test_pure(detector: ModuleType) -> None:
    run = healthy(3)
    assert detector.detect(Curves(run)) == detector.detect(Curves(run))


def test_a_broken_detector_is_said_and_the_others_still_run() -> None:
    class Broken:
        NAME = "broken"

        @staticmethod
        def detect(curves: Curves) -> list[Event]:
            raise ZeroDivisionError(f"by zero in {curves.run.name}")

    values = falling(900, 1)
    values[500:] = np.nan
    found = find_incidents(run_of({"loss": values}), (Broken,))
    assert [f.what for f in found.failed] == ["detector broken"]
    assert "by zero" in found.failed[0].why
    assert EventKind.NON_FINITE in {i.event.kind for i in found.incidents}
