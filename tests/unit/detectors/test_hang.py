"""Clocks that run on without a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forensics.detectors import hang, unfinished
from forensics.model import EventKind, FloatArray, Run, Severity, Signal
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles
from tests.unit.synthetic import falling, run_of, signal_of

N = 500


def run(times: FloatArray, until: float | None = None, **notes: object) -> Run:
    """A run whose steps were logged at ``times``, with a system record every 15 seconds ``until`` some time."""
    made = run_of({"loss": signal_of("loss", falling(len(times), 0), wall_times=times)}, notes=notes)
    if until is None:
        return made
    clock = np.arange(0.0, until, 15.0)
    system = Signal("system.gpu.0.gpu", np.minimum(clock / 2, len(times) - 1).astype(np.int64), np.full(len(clock), 97.0), wall_times=clock)
    return replace(made, signals=assign_roles((*made.signals, system)))


STEADY = 2.0 * np.arange(N)


@pytest.mark.parametrize("times", [np.empty(0), np.zeros(1), np.zeros(N), np.full(N, np.nan), STEADY[::-1]])
def test_no_usable_clock(times: FloatArray) -> None:
    assert hang.detect(Curves(run(times))) == []


def test_no_clock_at_all() -> None:
    assert hang.detect(Curves(run_of({"loss": falling(N, 0)}))) == []


def test_heavy_tailed_step_times_are_no_hang() -> None:
    times = np.cumsum(2.0 * np.exp(0.3 * np.abs(np.random.default_rng(0).standard_t(2.5, N))))
    assert hang.detect(Curves(run(times))) == []


def test_evaluations_of_ten_minutes_are_a_habit() -> None:
    times = STEADY + 700.0 * (np.arange(N) // 100)
    assert hang.detect(Curves(run(times))) == []


def test_steps_that_were_not_logged_took_their_time() -> None:
    later = np.arange(N) >= 250
    loss = signal_of("loss", falling(N, 0), np.arange(N) + 5000 * later, wall_times=STEADY + 10_000.0 * later)
    assert hang.detect(Curves(run_of({"loss": loss}))) == []


def test_one_long_pause() -> None:
    (event,) = hang.detect(Curves(run(STEADY + 7200.0 * (np.arange(N) >= 250))))
    assert (event.kind, event.severity, event.onset_step) == (EventKind.THROUGHPUT_CHANGE, Severity.INFO, 250)
    assert "2 hours" in event.text


def test_system_records_long_after_the_last_step() -> None:
    curves = Curves(run(STEADY, 2.0 * N + 3600.0, finished=False))
    (event,) = hang.detect(curves)
    assert (event.kind, event.severity, event.onset_step) == (EventKind.UNFINISHED, Severity.WARNING, N - 1)
    assert unfinished.detect(curves) == []


def test_the_same_in_a_run_that_ended_well_is_info() -> None:
    (event,) = hang.detect(Curves(run(STEADY, 2.0 * N + 3600.0, finished=True, exit_code=0)))
    assert event.severity is Severity.INFO


def test_records_of_a_few_minutes_are_the_end_of_any_run() -> None:
    assert hang.detect(Curves(run(STEADY, 2.0 * N + 300.0, finished=False))) == []
