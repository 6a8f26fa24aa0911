from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forensics.correlate.related import MOST, related
from forensics.correlate.stability import stability
from forensics.correlate.view import View
from forensics.detectors.incidents import Incident
from forensics.model import Attempt, Event, EventKind, FloatArray, Run, Severity
from forensics.primitives.curves import Curves
from tests.unit.synthetic import bump, falling, run_of, signal_of

N = 1000
STEPS = np.arange(N)


def noisy(seed: int, size: float = 0.1) -> FloatArray:
    return np.asarray(np.exp(np.random.default_rng(seed).normal(0, size, N)), dtype=np.float64)


def view_of(run: Run, onset: int = 500, kind: EventKind = EventKind.SPIKE, attempts: int | None = None) -> View:
    event = Event(kind, Severity.WARNING, 0.9, "loss", onset, onset + 2, id="E1")
    incident = Incident(event, (event,), attempts)
    return View(run, Curves(run, attempts), incident, (incident,))


LOSS = falling(N, 1) * bump(N, 500, 0.8, 10)


def test_a_run_with_nothing_but_an_event() -> None:
    view = view_of(run_of({}))
    assert view.loss is None
    assert view.grad is None
    assert view.grad_lead is None
    assert view.schedule is None
    assert view.jump is None
    assert view.resume is None
    assert view.recurring is None
    assert (view.every, view.length, view.first_step) == (1.0, 1, 0)
    assert related(view) == ()
    assert view.evidence("x", "loss", 5).signal is None


def test_a_lead_of_the_gradient() -> None:
    view = view_of(run_of({"loss": LOSS, "grad_norm": noisy(2) * bump(N, 496, 9, 20)}))
    assert view.grad_lead == 4
    (other,) = related(view)
    assert (other.signal, other.onset_step, other.lag) == ("grad_norm", 496, -4)


def test_a_fall_of_the_reward_and_of_the_entropy() -> None:
    view = view_of(run_of({"loss": LOSS, "reward": 1.0 + 0.02 * np.log(noisy(2)) - (STEPS >= 497) * 0.5, "entropy": noisy(3) / bump(N, 503, 4, 30)}))
    found = {r.signal: (r.onset_step, r.lag, r.change) for r in related(view)}
    assert found["reward"][:2] == (497, -3)
    assert found["entropy"][:2] == (503, 3)
    assert found["reward"][2].startswith("reward fell from 0.99")
    assert "fell from" in found["entropy"][2]


def test_signals_that_rise_from_nothing_have_no_factor() -> None:
    view = view_of(run_of({"loss": LOSS, "kl": 0.001 * np.log(noisy(2)) + (STEPS >= 498) * 0.5}))
    (other,) = related(view)
    assert "times its level" not in other.change or "nan" not in other.change


def test_a_lead_below_the_logging_interval_is_unknown() -> None:
    signals = {
        "loss": signal_of("loss", LOSS, STEPS * 10),
        "grad_norm": signal_of("grad_norm", noisy(2) * bump(N, 499, 9, 20), STEPS * 10),
    }
    view = view_of(run_of(signals), 5000)
    assert view.grad_lead is None
    assert related(view)[0].lag is None


def test_a_constant_gradient_norm_is_not_logged() -> None:
    assert view_of(run_of({"loss": LOSS, "grad_norm": np.zeros(N)})).grad is None


def test_a_jump_of_the_learning_rate_before_the_event_and_not_one_after_it() -> None:
    before = view_of(run_of({"loss": LOSS, "lr": np.where(STEPS < 498, 1e-3, 1e-2)})).jump
    assert before is not None
    assert before.step == 498
    assert view_of(run_of({"loss": LOSS, "lr": np.where(STEPS < 600, 1e-3, 1e-2)})).jump is None


def test_a_restart_just_before_the_event() -> None:
    attempts = [Attempt(0, 489), Attempt(490, N - 1, 489)]
    assert view_of(run_of({"loss": LOSS}, attempts=attempts)).resume == attempts[1]
    assert view_of(run_of({"loss": LOSS}, attempts=[Attempt(0, 299), Attempt(300, N - 1, 299)])).resume is None


def test_a_long_pause_is_a_restart() -> None:
    times = STEPS * 1.0
    times[495:] += 3600
    assert view_of(run_of({"loss": signal_of("loss", LOSS, wall_times=times)})).resume == 495


def test_evidence_leads_to_its_record() -> None:
    loss = signal_of("loss", LOSS, records=STEPS + 2)
    found = view_of(run_of({"loss": loss})).evidence("it rose", "loss", 500, weight=2.0)
    assert (found.signal, found.step, found.source, found.weight) == ("loss", 500, "run/log.csv#502", 2.0)
    assert found.value == pytest.approx(LOSS[500])


def test_evidence_of_a_step_between_logged_ones_is_the_value_in_force() -> None:
    found = view_of(run_of({"loss": LOSS, "lr": signal_of("lr", [1e-3, 2e-3], [0, 400])})).evidence("rate", "lr", 500)
    assert (found.step, found.value) == (400, 2e-3)


def test_evidence_before_the_first_point_has_no_record() -> None:
    found = view_of(run_of({"loss": signal_of("loss", LOSS, STEPS + 100)})).evidence("x", "loss", 5)
    assert (found.step, found.source) == (5, None)


def test_the_same_batch_at_another_alarm() -> None:
    ids = STEPS.copy()
    ids[[500, 800]] = 4242
    run = run_of({"loss": LOSS, "batch_id": ids})
    one = view_of(run)
    other = replace(one.incident, event=replace(one.event, onset_step=800))
    info = replace(one.incident, event=replace(one.event, onset_step=801, severity=Severity.INFO))
    found = View(run, one.curves, one.incident, (one.incident, other, info)).recurring
    assert found is not None
    assert found.steps == (500, 800)


def test_the_list_of_related_signals_is_bounded() -> None:
    layers = {f"grads/layers.{i}/norm": noisy(i) * bump(N, 500, 9, 20) for i in range(40)}
    assert len(related(view_of(run_of({"loss": LOSS, **layers})))) == MOST


def test_stability_of_a_short_or_empty_run_is_unknown() -> None:
    assert stability(run_of({})).loss_7sd_1000 is None
    assert stability(run_of({"loss": falling(100, 1)})).loss_6sd_128 is None


def test_stability_counts_spikes() -> None:
    values = np.random.default_rng(0).normal(3.0, 0.1, 3000)
    values[[1500, 2000]] += 5
    score = stability(run_of({"loss": values}))
    assert score.loss_7sd_1000 == pytest.approx(2 / 2000)
    assert score.loss_6sd_128 == pytest.approx(2 / (3000 - 128))
    assert score.grad_norm_7sd_1000 is None


def test_share_of_skipped_steps() -> None:
    scale = 65536.0 / 2.0 ** (STEPS // 100)
    assert stability(run_of({"loss_scale": scale})).skipped_share == pytest.approx(9 / 999)
    assert stability(run_of({"skipped": np.where(STEPS == 5, 1, 0)})).skipped_share == pytest.approx(1 / N)
