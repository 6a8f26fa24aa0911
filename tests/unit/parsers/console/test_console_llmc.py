"""llm.c: cut and broken lines first, then what looks like them, then the values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from console_reading import FIXTURES, claim, put, read, read_text

from forensics.parsers.console import llmc, modded_nanogpt


def test_a_line_cut_by_the_scheduler() -> None:
    got = read(llmc, FIXTURES / "llmc_nan.log")
    assert got.signals["loss"].steps.tolist() == [1, 2, 3, 99, 100]
    assert np.isnan(got.signals["loss"].values).all()
    assert np.isnan(got.signals["norm"].values).all()
    assert got.points("lr")[-1] == (100, 8.57e-05)
    assert got.signals["step time (ms)"].steps.tolist() == [1, 2, 3, 99]  # "3616." and then another program's words
    assert got.damage == ["1 lines are cut or broken by other output (first in line 22): 3 values: step time (ms), MFU (%), tok/s"]
    assert any("DUE TO TIME LIMIT" in str(m) for m in got.notes["messages"])  # type: ignore[attr-defined]


def test_a_message_inside_a_record() -> None:
    got = read(llmc, FIXTURES / "llmc_broken.log")
    assert (19528, 3.329409) in got.points("loss")
    assert 19528 not in got.signals["lr"].steps
    assert 19529 in got.signals["lr"].steps
    assert got.points("val loss") == [(19560, 3.264775)]
    assert len(got.damage) == 1


def test_z_scores_are_no_values() -> None:
    got = read(llmc, FIXTURES / "llmc_broken.log")
    assert set(got.signals) == {"loss", "norm", "lr", "step time (ms)", "MFU (%)", "tok/s", "val loss"}


def test_validation_before_the_first_step_is_step_zero() -> None:
    assert read(llmc, FIXTURES / "llmc_nan.log").signals["val loss"].steps.tolist() == [0]


def test_the_parameter_table_is_configuration() -> None:
    config = read(llmc, FIXTURES / "llmc_nan.log").collector.config
    assert config["learning rate (LR)"] == 6e-4
    assert config["total batch size"] == 524288
    assert config["LR scheduler"] == "cosine"


def test_main_log() -> None:
    got = read(llmc, FIXTURES / "llmc_main.log")
    assert got.points("tel") == [(0, 11.0092), (250, 6.171)]
    assert got.points("trl")[0] == (0, 11.0091)
    assert not got.damage


def test_a_last_number_that_lost_digits(tmp_path: Path) -> None:
    text = "s:0 trl:11.0091 lr:0.000001 norm:15.37\ns:1 trl:10.9598 lr:0.000002 norm:15.2"
    got = read_text(llmc, tmp_path, text, "main.log")
    assert got.points("norm") == [(0, 15.37)]
    assert got.points("lr")[-1] == (1, 0.000002)
    assert "the log ends in the middle of a number: the last value of norm" in got.damage
    whole = read_text(llmc, tmp_path, text + "4", "main.log")
    assert whole.points("norm")[-1] == (1, 15.24)
    assert not whole.damage


def test_a_val_loss_alone_is_not_claimed(tmp_path: Path) -> None:
    assert claim(llmc, put(tmp_path, "val loss 3.2\nval loss 3.1\nval loss 3.0\n")) == 0
    assert claim(llmc, FIXTURES / "llmc_nan.log") > 80
    assert claim(llmc, FIXTURES / "llmc_main.log") > 80
    assert claim(llmc, FIXTURES / "modded_nanogpt.txt") == 0
    assert claim(modded_nanogpt, FIXTURES / "llmc_main.log") == 0
