"""Megatron lines: torn ones first, then what must not be taken for them, then real logs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from console_reading import FIXTURES, claim, put, read, read_text

from forensics.parsers.console import deepspeed, generic, megatron
from forensics.parsers.interface import NotMine

LINE = (
    " iteration {step:8d}/  311541 | consumed samples: {samples:12d} | learning rate: 9.850E-05 | lm loss: {loss} | grad norm: 0.174"
    " | number of skipped iterations:   0 |\n"
)


def log(*losses: str) -> str:
    return "".join(LINE.format(step=i, samples=i * 1024, loss=loss) for i, loss in enumerate(losses, start=1))


def test_a_number_that_was_cut_is_not_read(tmp_path: Path) -> None:
    text = log("2.198845E+00", "2.220424E+00", "2.595213E+00")
    cut = text[: text.rindex("13E+00")]  # "lm loss: 2.5952" looks like a whole number
    got = read_text(megatron, tmp_path, cut)
    assert got.points("lm loss") == [(1, 2.198845), (2, 2.220424)]
    assert got.signals["consumed samples"].steps.tolist() == [1, 2, 3]
    assert got.damage == ["1 lines are cut or broken by other output (first in line 3): 3 values: lm loss, grad norm, number of skipped iterations"]


def test_other_output_inside_a_line(tmp_path: Path) -> None:
    lines = log("2.1", "2.2", "2.3").splitlines(keepends=True)
    lines[1] = lines[1][:90] + "NCCL WARN timeout\n"
    got = read_text(megatron, tmp_path, "".join(lines))
    assert [step for step, _ in got.points("lm loss")] == [1, 3]
    assert len(got.damage) == 1
    assert "first in line 2" in got.damage[0]


def test_foreign_bytes_cost_their_line_only(tmp_path: Path) -> None:
    lines = log("2.1", "2.2", "2.3").encode().splitlines(keepends=True)
    got = read_text(megatron, tmp_path, lines[0] + b"\xff\xfe\x80 garbage\n" + lines[1].replace(b"lm loss: 2.2", b"lm loss: \xff.2") + lines[2])
    assert [step for step, _ in got.points("lm loss")] == [1, 3]
    assert [step for step, _ in got.points("grad norm")] == [1, 2, 3]


def test_a_text_without_records_is_not_mine(tmp_path: Path) -> None:
    with pytest.raises(NotMine):
        read_text(megatron, tmp_path, "setting number of micro-batches to constant 1\n")


def test_a_line_of_skipped_iterations_has_no_loss(tmp_path: Path) -> None:
    text = log("2.1", "2.2").replace(" lm loss: 2.2 |", "")
    got = read_text(megatron, tmp_path, text)
    assert got.points("lm loss") == [(1, 2.1)]
    assert got.signals["grad norm"].steps.tolist() == [1, 2]
    assert not got.damage


def test_names_that_come_later_are_no_damage(tmp_path: Path) -> None:
    text = log("2.1") + log("2.1", "2.2", "2.3").replace("\n", " samples per second: 19.2 | TFLOPs: 149.02 |\n")
    got = read_text(megatron, tmp_path, text)
    assert len(got.signals["TFLOPs"]) == 3
    assert not got.damage


def test_nan_is_a_value(tmp_path: Path) -> None:
    got = read_text(megatron, tmp_path, log("2.1", "nan", "inf"))
    values = got.signals["lm loss"].values
    assert math.isnan(values[1])
    assert math.isinf(values[2])


def test_a_quote_of_one_line_is_claimed_with_doubt_and_a_readme_not_at_all(tmp_path: Path) -> None:
    assert claim(megatron, put(tmp_path, "The log says:\n" + log("2.1"), "mail.txt")) < claim(megatron, put(tmp_path, log("2.1", "2.2")))
    assert claim(megatron, put(tmp_path, log("2.1", "2.2"), "README.txt")) == 0
    assert claim(megatron, put(tmp_path, log("2.1", "2.2"), "run.csv")) == 0
    assert claim(megatron, put(tmp_path, "iteration 3/10 of the loop | ok\n" * 5)) == 0


def test_held_out_losses_and_times(tmp_path: Path) -> None:
    text = (
        log("2.1").replace(" iteration", " [2024-05-01 12:00:00] iteration")
        + " validation loss at iteration 1 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |\n"
        + LINE.format(step=2, samples=2048, loss="2.0").replace(" iteration", " [2024-05-01 12:00:30.500000] iteration")
        + " validation loss at the end of training for test data | lm loss value: 2.4E+00 | lm loss PPL: 1.1E+01 |\n"
    )
    got = read_text(megatron, tmp_path, text)
    assert got.points("validation lm loss") == [(1, 2.5)]
    assert got.points("test lm loss") == [(2, 2.4)]
    times = got.signals["lm loss"].wall_times
    assert times is not None
    assert times[1] - times[0] == 30.5


def test_processes_that_all_print(tmp_path: Path) -> None:
    one, two = log("2.1", "2.2").splitlines(keepends=True)
    text = "".join(f"[default{rank}]:{line}" for line in (one, two) for rank in (3, 7))
    got = read_text(megatron, tmp_path, text)
    assert got.points("lm loss") == got.points("lm loss_rank7") == [(1, 2.1), (2, 2.2)]
    assert got.lines("lm loss") == [1, 3]


def test_overflow_notices(tmp_path: Path) -> None:
    over = "[2023-07-24 13:21:32,378] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] "
    over += "OVERFLOW! Rank {} Skipping step. Attempted loss scale: {}, reducing to {}\n"
    text = log("2.1") + over.format(0, 65536, 32768) + over.format(1, 65536, 32768)
    text += LINE.format(step=2, samples=2048, loss="2.0") + over.format(0, 32768, 16384)
    got = read_text(megatron, tmp_path, text)
    assert got.points("notice/loss scale") == [(2, 32768), (3, 16384)]
    assert got.points("notice/skipped") == [(1, 0), (2, 1), (3, 1)]
    assert got.lines("notice/loss scale") == [2, 5]


def test_bloom() -> None:
    got = read(megatron, FIXTURES / "bloom.log")
    assert got.points("lm loss")[5] == (31219, 5.098124)
    assert got.points("grad norm")[5] == (31219, 960.351)
    assert got.signals["consumed tokens"].values.dtype == "int64"
    assert got.notes["max_steps"] == 115311
    assert not got.damage


def test_scale_collapse() -> None:
    got = read(megatron, FIXTURES / "scale_collapse.log")
    assert got.points("loss scale")[-1] == (17068, 32768.0)


def test_arguments_and_timers(tmp_path: Path) -> None:
    text = (
        "using torch.float16 for parameters ...\n------------------------ arguments ------------------------\n"
        "  adam_eps ........................................ 1e-08\n  bf16 ............................................ False\n"
        "  clip_grad ....................................... 1.0\n  data_path ....................................... ['data']\n"
        "  lr_warmup_iters ................................. 0\n  decoder_seq_length .............................. None\n"
        "-------------------- end of arguments ---------------------\n"
        "time (ms) | model-and-optimizer-setup: 336.26 | train/valid/test-data-iterators-setup: 662.92\n"
    )
    text += "".join(line + "time (ms) | forward-compute: 28100.85 | optimizer: 12.3\n" for line in log("12.4", "44.2").splitlines(keepends=True))
    path = put(tmp_path, text, "train.out")
    got = read(megatron, path)
    assert got.points("lm loss") == [(1, 12.4), (2, 44.2)]
    config = got.collector.config
    assert (config["adam_eps"], config["bf16"], config["clip_grad"], config["lr_warmup_iters"]) == (1e-8, False, 1.0, 0)
    assert config["decoder_seq_length"] is None
    assert "forward-compute" not in got.signals
    assert claim(megatron, path) > claim(generic, path)
    assert claim(deepspeed, path) == 0


def test_nemo(tmp_path: Path) -> None:
    text = "".join(
        f"Training epoch 0, iteration {i}/99 | lr: 5.6e-06 | global_step: {i} | reduced_train_loss: 2.7{i} | train_step_timing in s: 0.189\n"
        for i in range(3)
    )
    got = read_text(megatron, tmp_path, text)
    assert got.points("reduced_train_loss") == [(0, 2.7), (1, 2.71), (2, 2.72)]
    assert len(got.signals["train_step_timing in s"]) == 3
