from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from forensics.model import FloatArray
from forensics.primitives.lr_schedule import LrSchedule, read_schedule
from tests.unit.synthetic import signal_of

N = 1000


def read(values: ArrayLike, every: int = 1) -> LrSchedule:
    array = np.asarray(values, dtype=np.float64)
    found = read_schedule(signal_of("lr", array, np.arange(len(array)) * every, role="lr"))
    assert found is not None
    return found


def warm(length: int = 100, points: int = N) -> FloatArray:
    ramp: FloatArray = np.minimum((np.arange(points) + 1) / length, 1.0)
    return ramp


def cosine(points: int = N, low: float = 0.1) -> FloatArray:
    return np.asarray(low + (1 - low) * 0.5 * (1 + np.cos(np.pi * np.arange(points) / points)), dtype=np.float64)


@pytest.mark.parametrize("values", [[], [1e-3], [1e-3, 1e-3], [np.nan] * 9, [0.0] * 9, [-1.0] * 9])
def test_too_little_to_read(values: list[float]) -> None:
    assert read_schedule(signal_of("lr", values, role="lr")) is None


HEALTHY = {
    "constant": np.full(N, 3e-4),
    "cosine": 3e-4 * cosine(),
    "warmup and cosine": 3e-4 * warm() * cosine(),
    "warmup, stable, decay": 3e-4 * warm() * np.minimum(1, (N - np.arange(N)) / 200),
    "multi-step": 0.1 * np.repeat([1.0, 0.1, 0.01, 0.001], N // 4),
    "linear to zero": 3e-4 * (1 - np.arange(N) / N),
    "inverse square root": 3e-4 * np.minimum(warm(), 10 / np.sqrt(np.arange(N) + 1)),
    "one cycle": np.interp(np.arange(N), [0, 300, 999], [4e-5, 1e-3, 4e-9]),
    "with a NaN inside": np.where(np.arange(N) == 500, np.nan, 3e-4),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_planned_schedules_jump_nowhere(name: str) -> None:
    schedule = read(HEALTHY[name])
    assert schedule.ups == ()
    assert schedule.zero_from is None


SHAPES = {
    "constant": "constant",
    "cosine": "cosine",
    "warmup and cosine": "cosine",
    "warmup, stable, decay": "warmup-stable-decay",
    "multi-step": "multi-step",
    "linear to zero": "linear",
    "inverse square root": "inverse square root",
    "one cycle": "linear",
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    assert read(HEALTHY[name]).shape == SHAPES[name]


def test_laws_of_a_decay() -> None:
    t = np.arange(N)
    assert read(1e-3 * np.exp(-t / 300)).shape == "exponential"
    assert read(1e-3 * cosine()[: N // 2]).shape == "cosine"
    assert read(np.array([float(f"{v:.3e}") for v in 3e-4 * cosine()])).shape == "cosine"


def test_a_cosine_with_a_jump_that_returns_is_one() -> None:
    values = 3e-4 * cosine()
    values[500:540] *= 10
    assert read(values).shape == "cosine"


def test_a_decay_that_follows_no_law() -> None:
    assert read(np.interp(np.arange(N), [0, 200, 400, 999], [1e-3, 8e-4, 2e-4, 1e-4])).shape == "decay"


def test_the_end_of_a_warmup() -> None:
    assert abs(read(HEALTHY["warmup and cosine"]).warmup_steps - 99) <= 2
    assert read(HEALTHY["constant"]).warmup_steps == 0
    assert abs(read(HEALTHY["one cycle"]).warmup_steps - 300) <= 1
    assert abs(read(3e-4 * warm(10, 100), every=10).warmup_steps - 90) <= 10


def test_drops_of_a_multi_step_schedule() -> None:
    assert [d.step for d in read(HEALTHY["multi-step"]).drops] == [250, 500, 750]
    assert read(HEALTHY["multi-step"]).drops[0].factor == pytest.approx(10)


def test_warm_restarts_go_back_up_but_not_above() -> None:
    schedule = read(1e-3 * np.tile(cosine(250, 0.01), 4))
    assert [u.step for u in schedule.ups] == [250, 500, 750]
    assert not any(u.new_maximum for u in schedule.ups)
    assert schedule.shape == "restarts"


def test_a_jump_above_everything() -> None:
    values = 3e-4 * warm() * cosine()
    values[600:] *= 10
    (jump,) = read(values).ups
    assert jump.step == 600
    assert jump.new_maximum
    assert jump.factor == pytest.approx(10, rel=0.02)
    assert jump.returns is None


def test_a_short_spike_comes_back() -> None:
    values = np.full(N, 3e-4)
    values[400:404] *= 30
    (jump,) = read(values).ups
    assert (jump.step, jump.returns) == (400, 404)
    assert read(values).peak == pytest.approx(3e-4)


def test_a_second_warmup() -> None:
    values = 3e-4 * warm() * cosine()
    values[500:] = 3e-4 * warm(60, 500) * cosine(500)
    schedule = read(values)
    assert any(495 <= u.step <= 505 for u in schedule.ups)
    assert schedule.phase(530) == "rewarm"


def test_zero_in_mid_run() -> None:
    values = 3e-4 * warm()
    values[400:] = 0
    schedule = read(values)
    assert schedule.zero_from == 400
    assert schedule.phase(700) == "zero"
    assert schedule.at(700) == 0.0


def test_zero_at_the_end_of_the_plan_is_planned() -> None:
    values = 3e-4 * np.maximum(0, 1 - np.arange(N) / 980)
    assert read(values).zero_from is None


def test_phases() -> None:
    schedule = read(HEALTHY["warmup, stable, decay"])
    assert [schedule.phase(s) for s in (-5, 10, 105, 400, 850, 990, 5000)] == ["warmup", "warmup", "peak", "stable", "decay", "tail", "tail"]


def test_the_rate_in_force() -> None:
    schedule = read([1.0, 2.0, 3.0], every=10)
    assert schedule.at(-1) is None
    assert schedule.at(0) == 1.0
    assert schedule.at(19) == 2.0
    assert schedule.at(999) == 3.0


def test_a_warmup_in_stairs() -> None:
    schedule = read(1e-3 * np.minimum(np.arange(N) // 50 + 1, 6) / 6)
    assert schedule.ups == ()
    assert abs(schedule.warmup_steps - 250) <= 1


def test_a_schedule_that_ran_out_long_before_the_end() -> None:
    found = read(np.maximum(1 - np.arange(N) / 250, 0.0))
    assert found.zero_from == 250


def test_a_small_but_living_rate_at_the_end_is_planned() -> None:
    assert read(np.maximum(0.97 ** np.arange(N), 1e-5)).zero_from is None


def test_a_jump_back_in_the_middle_of_a_decay_is_no_planned_restart() -> None:
    values = np.concatenate([cosine()[:600], cosine()[:400]])
    schedule = read(3e-4 * values)
    assert schedule.shape != "restarts"
    assert schedule.restart_near(600, 10) is None


def test_one_restart_after_a_finished_cycle_is_planned() -> None:
    schedule = read(3e-4 * np.tile(cosine(N // 2), 2))
    assert schedule.shape == "restarts"
    near = schedule.restart_near(505, 10)
    assert near is not None
    assert near.step == 500
    assert schedule.restart_near(700, 10) is None


def test_a_triangle_that_comes_again_is_planned() -> None:
    wave = 1.0 - 0.8 * np.abs((np.arange(N) % 250) / 125 - 1.0)
    assert read(1e-3 * wave).shape == "restarts"
