from __future__ import annotations

import pytest

from forensics.correlate.settings import Settings, read_settings


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({"adam_beta2": 0.999}, "beta2", 0.999),
        ({"optimizer.betas": [0.9, 0.95]}, "beta2", 0.95),
        ({"betas": (0.9, 0.95)}, "beta1", 0.9),
        ({"max_grad_norm": 1}, "clip", 1.0),
        ({"trainer.gradient_clip_val": "0.5"}, "clip", 0.5),
        ({"clip-grad": 1.0}, "clip", 1.0),
        ({"adam_epsilon": 1e-8}, "eps", 1e-8),
        ({"wd": 0.1}, "weight_decay", 0.1),
        ({"args.warmup_steps": 500}, "warmup", 500.0),
        ({"lr-warmup-iters": 500}, "warmup", 500.0),
        ({"gradient_accumulation_steps": 8}, "accumulation", 8.0),
        ({"per_device_train_batch_size": 4}, "batch", 4.0),
        ({"train_iters": 1000}, "total_steps", 1000.0),
        ({"momentum": 0.9}, "momentum", 0.9),
        ({"optim": "adamw_torch"}, "optimizer", "adamw_torch"),
        ({"optimizer.type": "SGD"}, "optimizer", "sgd"),
        ({"fp16": True}, "half_precision", True),
        ({"dtype": "float16"}, "half_precision", True),
        ({"trainer.precision": "16-mixed"}, "half_precision", True),
    ],
)
def test_names_that_frameworks_give(config: dict[str, object], name: str, value: object) -> None:
    assert getattr(read_settings(config), name) == value


@pytest.mark.parametrize("config", [{}, {"beta2": "high"}, {"beta2": True}, {"beta2": None}, {"beta2": {"a": 1}}, {"beta2": [1, 2, 3]}, {"": 0.9}])
def test_what_is_not_a_number_is_not_known(config: dict[str, object]) -> None:
    assert read_settings(config).beta2 is None


def test_nothing_is_known_of_an_empty_configuration() -> None:
    found = read_settings({})
    assert found == Settings(half_precision=found.half_precision)
    assert not found.half_precision


def test_a_clip_that_was_switched_off_is_logged() -> None:
    assert read_settings({"max_grad_norm": None}).clip_logged
    assert read_settings({"max_grad_norm": None}).clip is None
    assert not read_settings({"lr": 1}).clip_logged


@pytest.mark.parametrize(("optimizer", "adaptive"), [("adamw", True), ("Lamb", True), ("adafactor", True), ("sgd", False), ("lion", False)])
def test_adaptive_optimizers(optimizer: str, adaptive: bool) -> None:
    assert read_settings({"optimizer": optimizer}).adaptive is adaptive


def test_a_second_beta_means_adam() -> None:
    assert read_settings({"beta2": 0.95}).adaptive is True
    assert read_settings({"lr": 0.1}).adaptive is None


def test_the_full_name_comes_before_the_last_part() -> None:
    assert read_settings({"ema.momentum": 0.5, "momentum": 0.9}).momentum == 0.9
