"""modded-nanogpt: cut logs, logs that begin with their source code, a step average that is no loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from console_reading import FIXTURES, claim, put, read, read_text

from forensics.parsers.console import generic, modded_nanogpt

CODE = 'for step in range(n):\n    print(f"step:{step}/{n} train_loss:{loss:.4f} train_time:{t:.0f}ms step_avg:{a:.2f}ms")\n'


def test_a_log_cut_in_its_last_line(tmp_path: Path) -> None:
    whole = (FIXTURES / "modded_nanogpt.txt").read_text()
    got = read_text(modded_nanogpt, tmp_path, whole[: whole.rindex("2")], "run.txt")
    assert len(got.signals["train_loss"]) > 10
    assert got.damage


def test_nan_of_the_step_average_is_no_value() -> None:
    got = read(modded_nanogpt, FIXTURES / "modded_nanogpt.txt")
    assert not np.isnan(got.signals["step_avg"].values).any()
    assert got.signals["step_avg"].steps[0] == 13
    assert got.signals["train_loss"].steps[0] == 1
    assert not got.damage


def test_nan_of_the_loss_is_one(tmp_path: Path) -> None:
    text = "step:1/10 train_loss:3.1 train_time:100ms step_avg:nanms\nstep:2/10 train_loss:nan train_time:200ms step_avg:nanms\n"
    got = read_text(modded_nanogpt, tmp_path, text)
    assert np.isnan(got.signals["train_loss"].values[1])
    assert "step_avg" not in got.signals


def test_source_code_before_the_first_record(tmp_path: Path) -> None:
    text = CODE * 2_000 + "=" * 100 + "\n"
    text += "step:1/10 train_loss:3.1 train_time:100ms step_avg:nanms\nstep:2/10 train_loss:3.0 train_time:200ms step_avg:nanms\n"
    path = put(tmp_path, text, "run.txt")
    assert path.stat().st_size > 1 << 17
    assert claim(modded_nanogpt, path) > 80
    got = read(modded_nanogpt, path)
    assert got.points("train_loss") == [(1, 3.1), (2, 3.0)]
    assert got.lines("train_loss") == [4002, 4003]


def test_only_source_code_is_not_claimed(tmp_path: Path) -> None:
    assert claim(modded_nanogpt, put(tmp_path, CODE * 2_000, "train.txt")) == 0
    assert claim(generic, put(tmp_path, CODE * 2_000, "train.txt")) == 0


def test_values_and_places() -> None:
    got = read(modded_nanogpt, FIXTURES / "modded_nanogpt.txt")
    assert got.points("val_loss") == [(0, 10.9264), (125, 5.2017)]
    assert got.points("train_loss")[:2] == [(1, 10.9184), (2, 8.6834)]
    assert got.lines("val_loss")[0] == 4
    assert got.notes["max_steps"] == 6200
