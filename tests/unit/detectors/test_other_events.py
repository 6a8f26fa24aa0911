"""Events of every signal but the loss."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import batch_size, grad_norm, logit_growth, loss_scale, lr_anomaly, restart, unfinished
from forensics.model import Attempt, EventKind, FloatArray, Severity
from tests.unit.synthetic import curves_of, falling, signal_of

N = 1000
STEPS = np.arange(N)


def noisy(seed: int, size: float = 0.2) -> FloatArray:
    return np.asarray(np.exp(np.random.default_rng(seed).normal(0, size, N)), dtype=np.float64)


class TestGradNorm:
    def test_an_ordinary_outlier_is_at_most_info(self) -> None:
        norm = noisy(1)
        norm[500] *= 5
        assert all(e.severity is Severity.INFO for e in grad_norm.detect(curves_of({"grad_norm": norm})))

    def test_a_surge_far_outside_the_tail(self) -> None:
        norm = noisy(1)
        norm[500:505] *= 300
        (event,) = grad_norm.detect(curves_of({"grad_norm": norm}))
        assert (event.kind, event.severity) == (EventKind.GRAD_NORM_SURGE, Severity.WARNING)
        assert abs(event.onset_step - 500) <= 1

    def test_a_constant_is_not_logged(self) -> None:
        assert grad_norm.detect(curves_of({"grad_norm": np.full(60, 0.0)})) == []


class TestLossScale:
    def test_ordinary_scaling(self) -> None:
        assert loss_scale.detect(curves_of({"loss_scale": 65536.0 * 2.0 ** -((STEPS // 100) % 2)})) == []

    def test_the_search_at_the_start_is_info(self) -> None:
        (event,) = loss_scale.detect(curves_of({"loss_scale": 2.0 ** np.maximum(32 - STEPS, 16)}))
        assert event.severity is Severity.INFO

    def test_a_burst_that_recovers(self) -> None:
        scale = np.full(N, 65536.0)
        scale[600:604] /= [2, 4, 8, 16]
        scale[604:700] = 4096
        (event,) = loss_scale.detect(curves_of({"loss_scale": scale}))
        assert (event.kind, event.onset_step, event.recovered) == (EventKind.LOSS_SCALE_DROP, 600, True)
        assert event.severity is Severity.WARNING

    def test_a_collapse(self) -> None:
        (event,) = loss_scale.detect(curves_of({"loss_scale": 65536.0 / 2.0 ** np.clip(STEPS - 600, 0, 16)}))
        assert (event.kind, event.onset_step) == (EventKind.LOSS_SCALE_COLLAPSE, 601)
        assert event.peak == 1.0


class TestLearningRate:
    def test_a_planned_drop(self) -> None:
        assert lr_anomaly.detect(curves_of({"lr": np.where(STEPS < 500, 0.1, 0.01)})) == []

    def test_warm_restarts_are_info(self) -> None:
        lr = 1e-3 * np.tile(0.5 * (1 + np.cos(np.pi * np.arange(250) / 250)) + 1e-3, 4)
        assert {e.severity for e in lr_anomaly.detect(curves_of({"lr": lr}))} == {Severity.INFO}

    def test_a_jump(self) -> None:
        (event,) = lr_anomaly.detect(curves_of({"lr": np.where(STEPS < 500, 1e-3, 1e-2)}))
        assert (event.kind, event.severity, event.onset_step) == (EventKind.LR_ANOMALY, Severity.WARNING, 500)
        assert "x10" in event.text

    def test_zero(self) -> None:
        (event,) = lr_anomaly.detect(curves_of({"lr": np.where(STEPS < 500, 1e-3, 0)}))
        assert (event.onset_step, event.peak, event.severity) == (500, 0.0, Severity.WARNING)


class TestBatchSize:
    @pytest.mark.parametrize(("after", "severity"), [(512, Severity.INFO), (64, Severity.WARNING), (200, Severity.INFO)])
    def test_a_change(self, after: int, severity: Severity) -> None:
        (event,) = batch_size.detect(curves_of({"batch_size": np.where(STEPS < 400, 256, after)}))
        assert (event.kind, event.onset_step, event.severity) == (EventKind.BATCH_SIZE_CHANGE, 400, severity)

    def test_a_ramp_is_info(self) -> None:
        found = batch_size.detect(curves_of({"batch_size": 32 * 2 ** (STEPS // 200)}))
        assert {e.severity for e in found} == {Severity.INFO}

    def test_varying_sizes_are_no_change(self) -> None:
        assert batch_size.detect(curves_of({"batch_size": np.random.default_rng(0).integers(10, 100, N)})) == []

    def test_the_last_batch_may_be_partial(self) -> None:
        found = batch_size.detect(curves_of({"batch_size": np.where(STEPS < N - 1, 256, 17)}))
        assert all(e.severity is Severity.INFO for e in found)


class TestLogits:
    def test_healthy_logits(self) -> None:
        assert logit_growth.detect(curves_of({"attn_logit_max": 10 + STEPS * 0.02})) == []

    def test_growth_past_the_danger_line(self) -> None:
        (event,) = logit_growth.detect(curves_of({"attn_logit_max": 10 + STEPS * 0.2}))
        assert (event.kind, event.severity) == (EventKind.LOGIT_GROWTH, Severity.WARNING)
        assert event.peak == pytest.approx(209.8)

    def test_every_logged_layer(self) -> None:
        found = logit_growth.detect(curves_of({"attn_logit_max/0": 10 + STEPS * 0.2, "attn_logit_max/1": 10 + STEPS * 0.3}))
        assert len(found) == 2


class TestRestart:
    def test_one_attempt(self) -> None:
        assert restart.detect(curves_of({"loss": falling(N, 1)}, attempts=[Attempt(0, 999)])) == []

    def test_a_clean_resume_is_info(self) -> None:
        (event,) = restart.detect(curves_of({"loss": falling(N, 1)}, attempts=[Attempt(0, 499), Attempt(500, 999, 499)]))
        assert (event.severity, event.onset_step) == (Severity.INFO, 500)

    def test_steps_written_twice(self) -> None:
        (event,) = restart.detect(curves_of({"loss": falling(N, 1)}, attempts=[Attempt(0, 549), Attempt(500, 999, 499)]))
        assert (event.kind, event.severity, event.onset_step, event.end_step) == (EventKind.RESTART, Severity.WARNING, 500, 549)
        assert "written twice" in event.text

    def test_data_that_starts_again(self) -> None:
        (event,) = restart.detect(curves_of({"loss": falling(N, 1), "batch_id": np.where(STEPS < 600, STEPS, STEPS - 600)}))
        assert (event.onset_step, event.signal) == (600, "batch_id")

    def test_epochs_are_not_a_restart(self) -> None:
        found = restart.detect(curves_of({"batch_id": STEPS % 500, "epoch": STEPS / 500}))
        assert found == []

    def test_shuffled_ids_are_not_a_restart(self) -> None:
        assert restart.detect(curves_of({"batch_id": np.random.default_rng(0).integers(0, 300, N)})) == []


class TestUnfinished:
    @pytest.mark.parametrize("notes", [{}, {"exit_code": 0}, {"finished": True}])
    def test_nothing_known_against_it(self, notes: dict[str, object]) -> None:
        assert unfinished.detect(curves_of({"loss": falling(N, 1)}, notes=notes)) == []

    @pytest.mark.parametrize("notes", [{"exit_code": 1}, {"finished": False}])
    def test_a_log_that_ends_early_is_info(self, notes: dict[str, object]) -> None:
        (event,) = unfinished.detect(curves_of({"loss": falling(N, 1)}, notes=notes))
        assert (event.kind, event.severity, event.onset_step) == (EventKind.UNFINISHED, Severity.INFO, N - 1)


def test_steps_are_those_of_the_log() -> None:
    lr = signal_of("lr", np.where(STEPS < 500, 1e-3, 1e-2), STEPS * 10 + 3)
    (event,) = lr_anomaly.detect(curves_of({"lr": lr}))
    assert event.onset_step == 5003


class TestSparseScale:
    def test_a_lone_halving_long_before_the_burst_is_the_scaler_at_work(self) -> None:
        scale = np.full(N, 65536.0)
        scale[590:] = 32768.0
        scale[601:] = 32.0
        (event,) = loss_scale.detect(curves_of({"loss_scale": scale}))
        assert event.onset_step == 601

    def test_a_burst_in_which_every_fall_is_a_halving_begins_with_the_first(self) -> None:
        (event,) = loss_scale.detect(curves_of({"loss_scale": 65536.0 / 2.0 ** np.clip((STEPS - 600) // 5, 0, 8)}))
        assert event.onset_step == 605


def test_halvings_with_growth_between_them_are_the_scaler_at_work() -> None:
    position = np.arange(2000) % 40
    scale = 2.0 ** np.where(position < 25, 17, 16)
    assert loss_scale.detect(curves_of({"loss_scale": scale})) == []


def test_a_learning_rate_that_climbs_as_slowly_as_a_warmup_is_info() -> None:
    position = np.arange(1000) / 1000
    one_cycle = 1e-3 * np.where(position < 0.1, 0.1 - 0.5 * position, np.where(position < 0.3, 0.05 + 4.75 * (position - 0.1), (1 - position) / 0.7))
    events = lr_anomaly.detect(curves_of({"lr": one_cycle}))
    assert all(e.severity is Severity.INFO for e in events)
    jump = np.where(np.arange(1000) < 500, 1e-3, 1e-2)
    assert [e.severity for e in lr_anomaly.detect(curves_of({"lr": jump}))] == [Severity.WARNING]


class TestNewLevel:
    def test_a_level_above_everything_before_that_holds(self) -> None:
        norm = noisy(3)
        norm[500:] *= 8.0
        (event,) = grad_norm.detect(curves_of({"grad_norm": norm}))
        assert (event.severity, event.onset_step) == (Severity.WARNING, 500)

    def test_one_that_comes_gradually_or_was_seen_before_is_info(self) -> None:
        slow, again = noisy(3), noisy(3)
        slow *= np.exp(np.clip((STEPS - 300) / 200, 0, 2.1))
        again[:50] *= 10.0
        again[500:] *= 6.0
        for norm in (slow, again):
            assert all(e.severity is Severity.INFO for e in grad_norm.detect(curves_of({"grad_norm": norm})))


def test_only_the_tallest_ordinary_surges_are_noted() -> None:
    norm = np.exp(np.random.default_rng(0).normal(0, 0.02, 6000))
    norm[100:6000:100] *= np.linspace(1.5, 4.0, 59)
    events = grad_norm.detect(curves_of({"grad_norm": norm}))
    assert len(events) == grad_norm.MOST
    assert min(e.peak or 0.0 for e in events) > 2.5
    assert [e.onset_step for e in events] == sorted(e.onset_step for e in events)
