"""The fallback: texts that are no logs, lines that are no records, then loops of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from console_reading import FIXTURES, claim, put, read_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.parsers.console import generic
from forensics.parsers.discovery import WEAK, discover

LOOP = "".join(f"2024-05-01 12:00:{i:02d},123 INFO step {i * 10} | loss: {3 - i / 10:.2f}, lr=1e-4, tok/s 12k\n" for i in range(12))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=300), at=st.integers(0, len(LOOP)))
def test_any_bytes_may_be_in_it(tmp_path: Path, noise: bytes, at: int) -> None:
    text = LOOP.encode()
    got = read_text(generic, tmp_path, text[:at] + noise + text[at:])
    assert len(got.signals["loss"]) >= 9


@pytest.mark.parametrize("name", ["README.txt", "requirements.txt", "notes.txt", "run.csv", "run.jsonl", "train.sh", "model.cfg"])
def test_other_files_are_not_claimed(tmp_path: Path, name: str) -> None:
    assert claim(generic, put(tmp_path, LOOP, name)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.3.0\nnumpy==1.26\nstep==3\n" * 10,
        "Chapter 1: we took a step 3 times.\n" * 20,
        "step 5: install packages\nstep 6: run it\n" * 10,
        "INFO epoch 1 starts\nINFO epoch 2 starts\nINFO epoch 3 starts\n" * 3,
        "2024-05-01 12:00:00 iteration took too long\n" * 10,
    ],
)
def test_free_text_is_not_claimed(tmp_path: Path, text: str) -> None:
    assert claim(generic, put(tmp_path, text, "a.txt")) == 0


def test_numbers_without_a_known_name_are_claimed_weakly(tmp_path: Path) -> None:
    text = "".join(f"step {i}: widgets = {i * 2}\n" for i in range(20))
    assert 0 < claim(generic, put(tmp_path, text)) < WEAK


def test_a_weak_log_beside_a_real_run_is_no_run(tmp_path: Path) -> None:
    put(tmp_path, "".join(f"step {i}: widgets = {i * 2}\n" for i in range(20)), "other.log")
    put(tmp_path, "step,loss\n1,2.0\n2,1.9\n", "metrics.csv")
    found = discover(tmp_path)
    assert [source.path.name for run in found.runs for source in run.sources] == ["metrics.csv"]


def test_every_framework_reads_its_own_better() -> None:
    for path in FIXTURES.iterdir():
        if path.suffix in {".log", ".txt", ".out"}:
            (run,) = discover(path).runs
            assert run.sources[0].parser != generic.NAME, path


def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    got = read_text(generic, tmp_path, LOOP)
    assert got.points("loss")[:2] == [(0, 3.0), (10, 2.9)]
    assert got.points("tok/s")[0] == (0, 12_000)
    times = got.signals["loss"].wall_times
    assert times is not None
    assert times[1] - times[0] == 1.0
    assert not got.damage


def test_averages_in_parentheses(tmp_path: Path) -> None:
    text = "".join(f"[train] loss=2.{i} (2.9) Training step {i} acc@1 0.5 time 10:20:3{i}\n" for i in range(6))
    got = read_text(generic, tmp_path, text)
    assert got.points("loss")[1] == (1, 2.1)
    assert got.points("loss (avg)")[1] == (1, 2.9)
    assert "time" not in got.signals


def test_steps_in_brackets_and_units(tmp_path: Path) -> None:
    text = "".join(f"Epoch [1/10], Step [{i}00/600], Loss: 0.2{i} - elapsed time (ms): 1,2{i}0.5ms\n" for i in range(1, 7))
    got = read_text(generic, tmp_path, text)
    assert got.points("Loss")[0] == (100, 0.21)
    assert got.points("elapsed time (ms)")[0] == (100, 1210.5)
    assert got.points("Epoch")[-1] == (600, 1)
