"""Console logs in folders: beside other logs, beside each other, and W&B's copy of the console."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from console_reading import FIXTURES, put
from console_samples import SAMPLES

from forensics.parsers.discovery import discover
from forensics.parsers.reading import read

WANDB = Path(__file__).parents[4] / "fixtures" / "wandb"


def sources(path: Path) -> list[list[str]]:
    return [[s.path.name for s in run.sources] for run in discover(path).runs]


def test_other_texts_are_no_runs(tmp_path: Path) -> None:
    put(tmp_path, "torch==2.3\nnumpy==1.26\n", "requirements.txt")
    put(tmp_path, SAMPLES["console.nanogpt"], "README.txt")
    put(tmp_path, "2024-01-01 12:00:00,000 INFO MainThread:123 [wandb_init.py:setup():1] step 3 of 4\n" * 50, "debug.log")
    assert discover(tmp_path).runs == ()


def test_an_empty_log_is_no_damage(tmp_path: Path) -> None:
    put(tmp_path, "", "slurm-1.err")
    put(tmp_path, SAMPLES["console.nanogpt"], "slurm-1.out")
    found = discover(tmp_path)
    assert [s.path.name for run in found.runs for s in run.sources] == ["slurm-1.out"]
    assert not found.damage


def test_two_logs_are_two_runs_whatever_their_formats(tmp_path: Path) -> None:
    put(tmp_path, SAMPLES["console.nanogpt"], "a.log")
    put(tmp_path, SAMPLES["console.torchtitan"], "b.log")
    runs = discover(tmp_path).runs
    assert [run.name for run in runs] == ["a.log", "b.log"]


def test_a_log_beside_a_table_is_one_run(tmp_path: Path) -> None:
    put(tmp_path, "step,loss\n" + "".join(f"{i},{3 - i / 10}\n" for i in range(5)), "metrics.csv")
    put(tmp_path, SAMPLES["console.hf_print"], "job1.out")
    put(tmp_path, SAMPLES["console.hf_print"], "job2.out")
    (run,) = discover(tmp_path).runs
    assert [s.path.name for s in run.sources] == ["metrics.csv", "job1.out", "job2.out"]
    names = {signal.name for signal in read(run).signals}
    assert {"loss", "loss@console.hf_print", "grad_norm"} <= names


def test_logs_beside_two_runs_stay_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        put(tmp_path / name, "step,loss\n1,2.0\n2,1.9\n", "metrics.csv")
    put(tmp_path, SAMPLES["console.nanogpt"], "all.log")
    assert sorted(sources(tmp_path)) == [["all.log"], ["metrics.csv"], ["metrics.csv"]]


@pytest.mark.skipif(not WANDB.is_dir(), reason="no W&B fixture")
def test_the_console_that_wandb_saved_is_not_read_twice(tmp_path: Path) -> None:
    saved = next(WANDB.rglob("*.wandb"))
    folder = tmp_path / "wandb" / "offline-run-20240101_000000-abc"
    (folder / "files").mkdir(parents=True)
    shutil.copy(saved, folder / saved.name)
    put(folder / "files", SAMPLES["console.nanogpt"], "output.log")
    assert sources(tmp_path) == [[saved.name]]
    (folder / saved.name).unlink()
    assert sources(tmp_path) == [["output.log"]]
    (folder / saved.name).write_bytes(saved.read_bytes()[:200])
    assert ["output.log"] in [[n for n in names if n == "output.log"] for names in sources(tmp_path)]


def test_names_of_runs(tmp_path: Path) -> None:
    (tmp_path / "gpt2").mkdir()
    shutil.copy(FIXTURES / "llmc_main.log", tmp_path / "gpt2" / "main.log")
    (run,) = discover(tmp_path).runs
    assert run.name == "gpt2"


def test_whole_runs_one_after_the_other_are_attempts(tmp_path: Path) -> None:
    one = "".join(f"iter {i}: loss {4 - i / 100:.4f}, time 120.33ms, mfu 3.11%\n" for i in range(0, 200, 10))
    run = read(discover(put(tmp_path, one * 3, "train.log")).runs[0])
    assert len(run.attempts) == 3
    assert run.notes["begins_anew"] == 2
