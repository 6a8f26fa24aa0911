from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import Signal
from forensics.vocabulary import Role, assign_roles, classify, normalise, step_column
from tests.unit.synthetic_names import MISREAD, NAMES


def signals(*names: str, points: int = 3) -> tuple[Signal, ...]:
    return tuple(Signal(name, np.arange(points), np.zeros(points)) for name in names)


def roles(*names: str, **overrides: str) -> dict[str, tuple[str | None, int]]:
    return {s.name: (s.role, s.rank) for s in assign_roles(signals(*names), overrides)}


@pytest.mark.parametrize(("name", "role"), NAMES)
def test_names_of_the_field(name: str, role: str | None) -> None:
    assert classify(name)[0] == role


@pytest.mark.parametrize(("name", "role"), MISREAD)
def test_names_that_are_misread(name: str, role: str | None) -> None:
    assert classify(name)[0] == role


def test_the_table_knows_every_role_it_claims() -> None:
    assert {role for _, role in NAMES if role} >= {r.value for r in Role} - {"clip", "gpu", "param_norm_group", "router_logit_max"}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("optim/learningRate-group0", "optim_learning_rate_group0"),
        ("train/CrossEntropyLoss", "train_cross_entropy_loss"),
        ("  lm loss ", "lm_loss"),
        ("__", ""),
        ("HTTPServer", "http_server"),
        ("grad_2.0_norm_total", "grad_2_0_norm_total"),
    ],
)
def test_normal_form(name: str, plain: str) -> None:
    assert normalise(name) == plain


@given(st.text(max_size=60))
def test_any_text_is_classified(name: str) -> None:
    role, preference = classify(name)
    assert role is None or 0 <= preference <= 100
    assert normalise(normalise(name)) == normalise(name)


def test_a_hostile_name_takes_no_time() -> None:
    assert classify("_".join(["grad"] * 2000))[1] >= 0
    assert classify("a" * 20_000)[0] is None


@pytest.mark.parametrize(
    ("names", "axis"),
    [
        (["epoch", "step", "loss"], "step"),
        (["_step", "train/global_step", "loss"], "train/global_step"),
        (["gobal_step", "loss"], "gobal_step"),
        (["Iteration", "lm loss"], "Iteration"),
        (["epoch", "loss"], "epoch"),
        (["loss", "lr"], None),
        ([], None),
    ],
)
def test_step_axis_of_a_table(names: list[str], axis: str | None) -> None:
    assert step_column(names) == axis


def test_the_better_name_is_primary() -> None:
    found = roles("running_loss", "loss", "lr-AdamW/pg2", "learning_rate")
    assert found["loss"] == ("loss", 0)
    assert found["running_loss"] == ("loss", 1)
    assert found["learning_rate"] == ("lr", 0)
    assert found["lr-AdamW/pg2"] == ("lr", 1)


def test_of_equal_names_the_longer_curve_is_primary() -> None:
    short, long = signals("train/loss", points=3)[0], signals("loss", points=9)[0]
    found = {s.name: s.rank for s in assign_roles((short, long))}
    assert found == {"train/loss": 1, "loss": 0}


def test_of_equal_curves_the_first_is_primary() -> None:
    assert roles("loss", "train/loss")["loss"] == ("loss", 0)


def test_a_run_without_a_plain_loss_takes_its_best_other() -> None:
    found = roles("box_loss", "cls_loss", "lr")
    assert found["box_loss"] == ("loss", 0)
    assert found["cls_loss"] == ("loss_by_source", 0)


def test_reinforcement_learning_has_no_substitute_loss() -> None:
    found = roles("ppo/odd_loss", "objective/kl", "reward")
    assert found["ppo/odd_loss"][0] == "loss_by_source"


def test_an_override_wins_over_the_table() -> None:
    found = roles("loss", "my_curve", loss="my_curve")
    assert found["my_curve"] == ("loss", 0)
    assert found["loss"] == ("loss", 1)


def test_an_override_of_a_known_name_takes_it_from_its_own_role() -> None:
    found = roles("val_loss", "lr", loss="val_loss")
    assert found["val_loss"] == ("loss", 0)
    assert "val_loss" not in {role for role, _ in found.values()}


def test_an_override_of_a_missing_name_changes_nothing() -> None:
    assert roles("loss", lr="not there") == {"loss": ("loss", 0)}


def test_the_order_of_the_log_is_kept() -> None:
    names = ["zeta", "loss", "alpha", "lr"]
    assert [s.name for s in assign_roles(signals(*names))] == names


def test_unknown_names_keep_no_role() -> None:
    assert roles("frobnication")["frobnication"] == (None, 0)
    assert assign_roles(()) == ()
