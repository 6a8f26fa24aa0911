"""The logged schedule against the configuration: nothing to compare, printing, shares, and every parameter that can be off."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.correlate.schedule_check import Check, check_schedule, sentence
from forensics.correlate.settings import Settings, read_settings
from forensics.model import FloatArray, Signal
from forensics.primitives.lr_schedule import read_schedule

POINTS = 1000


def rates(warmup: int = 100, peak: float = 3e-4, end: int = POINTS, floor: float = 0.1) -> FloatArray:
    t = np.arange(POINTS)
    share = np.clip((t - warmup) / max(end - warmup, 1), 0, 1)
    return peak * np.minimum((t + 1) / max(warmup, 1), 1.0) * (floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * share)))


def checked(values: FloatArray, first: int = 0, **config: object) -> dict[str, Check]:
    signal = Signal("lr", first + np.arange(len(values), dtype=np.int64), values)
    return {c.what: c for c in check_schedule(read_schedule(signal), read_settings(config))}


def test_nothing_to_compare() -> None:
    assert check_schedule(None, Settings(lr=1.0)) == ()
    assert checked(rates()) == {}
    assert sentence(()) == ""


def test_odd_plans_are_passed_over() -> None:
    assert checked(rates(), lr=0, warmup_steps=-5, max_steps=0, min_lr=-1) == {}


def test_a_log_that_begins_later_shows_no_warmup() -> None:
    assert "warmup" not in checked(rates(), first=5000, warmup_steps=100)


def test_a_run_that_still_warms_up_shows_neither_warmup_nor_peak() -> None:
    assert checked(rates(warmup=5000), lr=3e-4, warmup_steps=5000) == {}


def test_as_configured() -> None:
    found = checked(np.array([float(f"{v:.3g}") for v in rates()]), learning_rate=3e-4, warmup_steps=100, max_steps=POINTS, min_lr=3e-5)
    assert {what: c.agrees for what, c in found.items()} == {"peak": True, "warmup": True, "end": True}
    assert "as configured" in found["peak"].text


def test_a_floor_given_as_a_share() -> None:
    assert checked(rates(), min_lr=0.1, max_steps=POINTS)["end"].agrees
    assert "end" not in checked(rates(floor=0.02), min_lr=0.1, max_steps=POINTS)


def test_a_warmup_given_as_a_share() -> None:
    assert checked(rates(), warmup_ratio=0.1, max_steps=POINTS)["warmup"].agrees


def test_the_last_step_of_a_staircase_is_not_its_end() -> None:
    assert "length" not in checked(np.repeat([1e-3, 1e-4, 1e-5], 300), max_steps=900)


@pytest.mark.parametrize(
    ("values", "config", "what", "times"),
    [
        (rates(peak=2.4e-3), {"lr": 3e-4}, "peak", 8),
        (rates(warmup=25), {"warmup_steps": 100}, "warmup", 4),
        (rates(end=250), {"max_steps": POINTS}, "length", 4),
        (rates(floor=0.5), {"min_lr": 3e-5, "max_steps": POINTS}, "end", None),
        (rates(peak=4.1e-4), {"lr": 3e-4}, "peak", None),
    ],
)
def test_what_is_not_as_configured(values: FloatArray, config: dict[str, object], what: str, times: int | None) -> None:
    found = checked(values, **config)
    assert found[what].agrees is False
    assert found[what].times == times
    assert "the configuration" in sentence(tuple(found.values()))
