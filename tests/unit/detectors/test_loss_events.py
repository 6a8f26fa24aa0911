"""Rises, noise and non-finite values of the loss, by their names."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import drop, find_incidents, noise_change, non_finite, overfitting, rises
from forensics.model import Event, EventKind, FloatArray, Severity
from tests.unit.synthetic import bump, curves_of, falling, run_of

N = 1500
STEPS = np.arange(N)


def one_rise(values: FloatArray) -> Event:
    (event,) = rises.detect(curves_of({"loss": values}))
    return event


def test_a_fall_is_no_event() -> None:
    values = falling(N, 1)
    values[700:] *= 0.6
    assert rises.detect(curves_of({"loss": values})) == []


def test_no_loss() -> None:
    assert rises.detect(curves_of({"grad_norm": falling(N, 1) * bump(N, 700, 5, 5)})) == []


@pytest.mark.parametrize("seed", range(4))
def test_spike(seed: int) -> None:
    event = one_rise(falling(N, seed) * bump(N, 700, 0.9, 5))
    assert event.kind is EventKind.SPIKE
    assert event.severity is Severity.WARNING
    assert abs(event.onset_step - 700) <= 1
    assert event.recovered
    assert event.height == pytest.approx((event.peak or 0) - (event.baseline or 0))
    assert event.baseline == pytest.approx(2.0, rel=0.1)


def test_slow_spike() -> None:
    event = one_rise(falling(N, 1) * bump(N, 600, 0.6, 80))
    assert event.kind is EventKind.SLOW_SPIKE
    assert abs(event.onset_step - 600) <= 2


def test_level_shift() -> None:
    event = one_rise(np.where(STEPS < 700, 1, 1.2) * falling(N, 1))
    assert event.kind is EventKind.LEVEL_SHIFT
    assert abs(event.onset_step - 700) <= 1
    assert event.end_step is None
    assert not event.recovered


def test_divergence_is_critical() -> None:
    event = one_rise(falling(N, 1) * np.exp(np.maximum(STEPS - 1300, 0) * 0.02))
    assert event.kind is EventKind.DIVERGENCE
    assert event.severity is Severity.CRITICAL


def test_drift() -> None:
    event = one_rise(falling(N, 1) * np.exp(np.maximum(STEPS - 700, 0) * 0.0004))
    assert event.kind is EventKind.DRIFT


def test_steps_are_those_of_the_log() -> None:
    from tests.unit.synthetic import signal_of

    values = falling(N, 1) * bump(N, 700, 0.9, 5)
    (event,) = rises.detect(curves_of({"loss": signal_of("loss", values, STEPS * 10 + 5)}))
    assert abs(event.onset_step - 7005) <= 10


def test_a_generator_s_loss_may_rise() -> None:
    values = np.where(STEPS < 700, 1, 1.3) * falling(N, 1)
    for event in rises.detect(curves_of({"loss": values, "reward": STEPS * 0.01, "kl": np.abs(falling(N, 2))})):
        assert event.severity is Severity.INFO


@pytest.mark.parametrize("seed", range(3))
def test_noise(seed: int) -> None:
    values = np.where(STEPS < 800, falling(N, seed, 0.02), falling(N, seed, 0.07))
    (event,) = noise_change.detect(curves_of({"loss": values}))
    assert event.kind is EventKind.NOISE_CHANGE
    assert abs(event.onset_step - 800) <= 20


def test_swing() -> None:
    values = falling(N, 1, 0.01) * np.exp(np.where(STEPS >= 800, 0.2 * np.sin(STEPS * 2 * np.pi / 20), 0))
    (event,) = noise_change.detect(curves_of({"loss": values}))
    assert event.kind is EventKind.OSCILLATION
    assert "period of 20" in event.text


def test_nan_to_the_end_is_critical() -> None:
    values = falling(N, 1)
    values[1000:] = np.nan
    (event,) = non_finite.detect(curves_of({"loss": values}))
    assert (event.kind, event.severity, event.onset_step) == (EventKind.NON_FINITE, Severity.CRITICAL, 1000)
    assert event.end_step is None
    assert "to the end" in event.text


def test_one_nan_is_a_warning() -> None:
    values = falling(N, 1)
    values[1000] = np.inf
    (event,) = non_finite.detect(curves_of({"loss": values}))
    assert (event.severity, event.onset_step, event.end_step, event.recovered) == (Severity.WARNING, 1000, 1001, True)
    assert "infinite" in event.text


def test_two_stretches_are_two() -> None:
    values = falling(N, 1)
    values[[300, 305, 1000]] = np.nan
    assert [e.onset_step for e in non_finite.detect(curves_of({"loss": values}))] == [300, 1000]


def test_a_gradient_that_overflowed_with_its_scale_is_how_scaling_works() -> None:
    grad, scale = np.ones(N), np.where(STEPS < 500, 65536.0, 32768.0)
    grad[500] = np.inf
    assert non_finite.detect(curves_of({"grad_norm": grad, "loss_scale": scale})) == []
    (event,) = non_finite.detect(curves_of({"grad_norm": grad}))
    assert event.signal == "grad_norm"


def test_overfitting() -> None:
    evaluations = np.concatenate([np.linspace(4, 2, 20), np.linspace(2, 3, 20)]) + np.random.default_rng(0).normal(0, 0.005, 40)
    (event,) = overfitting.detect(curves_of({"loss": falling(40, 1, 0.001), "val_loss": evaluations}))
    assert event.kind is EventKind.OVERFITTING
    assert abs(event.onset_step - 19) <= 2


def test_both_losses_rising_is_not_overfitting() -> None:
    both = np.concatenate([np.linspace(4, 2, 20), np.linspace(2, 3, 20)])
    assert overfitting.detect(curves_of({"loss": both, "val_loss": both})) == []


def test_a_held_out_loss_that_levels_off() -> None:
    assert overfitting.detect(curves_of({"loss": falling(40, 1), "val_loss": falling(40, 2, 0.01)})) == []


def test_a_jump_far_above_the_start_that_holds_is_a_shift_and_critical() -> None:
    values = falling(N, 5)
    values[900:] = 12.0 * np.exp(np.random.default_rng(5).normal(0, 0.02, N - 900))
    event = one_rise(values)
    assert event.kind is EventKind.LEVEL_SHIFT
    assert event.severity is Severity.CRITICAL


def test_growth_to_the_end_is_a_divergence_still() -> None:
    values = falling(N, 5)
    values[900:] *= np.exp(np.arange(N - 900) / 150)
    assert one_rise(values).kind is EventKind.DIVERGENCE


def test_a_step_of_learning_is_no_warning() -> None:
    values = falling(N, 6, noise=0.002)
    values[900:] *= 0.98
    assert all(event.severity is Severity.INFO for event in drop.detect(curves_of({"loss": values})))


def test_a_fall_to_a_fraction_is_placed_at_its_edge() -> None:
    values = falling(N, 6)
    values[905:] *= 0.3
    (event,) = drop.detect(curves_of({"loss": values}))
    assert (event.onset_step, event.severity) == (905, Severity.WARNING)


def test_a_held_out_loss_that_rose_fast_and_stayed_up_is_overfitting() -> None:
    held_out = np.concatenate([np.linspace(4, 2, 8), np.linspace(2.2, 3.4, 6), np.linspace(3.4, 3.0, 26)])
    (event,) = overfitting.detect(curves_of({"loss": falling(40, 1, 0.001), "val_loss": held_out}))
    assert event.onset_step == 7


def test_a_small_spike_before_a_shift_does_not_begin_it() -> None:
    values = falling(900, 3)
    values[594] *= 1.4
    values[604:] *= 3.0
    assert 604 in [e.onset_step for e in rises.detect(curves_of({"loss": values})) if e.end_step is None]


def test_one_large_point_on_an_uneven_descent_begins_at_itself() -> None:
    descent = 4.0 - np.arange(60) / 25 + 0.06 * np.random.default_rng(4).normal(size=60)
    descent[26] += 2.0
    (event,) = [i.event for i in find_incidents(run_of({"loss": descent})).incidents if i.event.severity is not Severity.INFO]
    assert (event.onset_step, event.peak_step) == (26, 26)


def test_falls_with_every_epoch_are_no_alarm() -> None:
    values = falling(1200, 5, 0.01) * 0.8 ** (np.arange(1200) // 200)
    drops = [i.event for i in find_incidents(run_of({"loss": values})).incidents if i.event.kind is EventKind.DROP]
    assert len(drops) >= 3
    assert all(d.severity is Severity.INFO and "every 200 steps" in d.text for d in drops)
    assert all(d.p_value is not None and d.p_value < 0.01 for d in drops)


def test_one_side_of_an_adversarial_pair_that_wins() -> None:
    values = 0.7 * np.exp(np.random.default_rng(0).normal(0, 0.1, 900))
    values[500:] /= 50
    run = run_of({"loss": values}, config={"model": "gan"})
    drops = [i.event for i in find_incidents(run).incidents if i.event.kind is EventKind.DROP]
    assert [(d.onset_step, d.severity) for d in drops] == [(500, Severity.WARNING)]


def test_a_column_filled_every_few_rows_has_no_bad_values() -> None:
    sparse = np.where(np.arange(900) % 5 == 0, falling(900, 1), np.nan)
    assert non_finite.detect(curves_of({"loss": sparse})) == []
    sparse[400] = np.inf
    assert [e.onset_step for e in non_finite.detect(curves_of({"loss": sparse}))] == [400]
    torn = np.where(np.arange(900) < 500, sparse, np.nan)
    assert non_finite.detect(curves_of({"loss": torn})) != []
    often = falling(900, 1)
    often[np.random.default_rng(0).random(900) < 0.5] = np.nan
    assert non_finite.detect(curves_of({"loss": often})) != []


def test_a_loss_that_rises_with_the_last_climb_of_a_cyclic_rate_is_info() -> None:
    wave = np.abs((np.arange(1050) % 300) / 150 - 1.0)
    lr = 1e-3 * (0.1 + 0.9 * wave)
    loss = falling(1050, 2, 0.005) * np.exp(0.15 * wave)
    assert [i.event for i in find_incidents(run_of({"loss": loss, "lr": lr})).incidents if i.event.severity is not Severity.INFO] == []
