"""MLflow's file store."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from forensics.model import Signal
from forensics.parsers import mlflow_files
from forensics.parsers.interface import Source
from forensics.parsers.sink import Collector

FIXTURE = Path(__file__).parents[3] / "fixtures/mlflow/mlruns"


def read(path: Path) -> tuple[dict[str, Signal], Collector]:
    collector = Collector()
    source = Source.of(path)
    claim = mlflow_files.sniff(source)
    assert claim is not None
    mlflow_files.parse(source, collector.sink(str(path), "mlflow_files"), claim.runs[0])
    return {s.name: s for s in collector.signals()}, collector


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for folder in ("metrics", "params", "tags"):
        (tmp_path / folder).mkdir()
    (tmp_path / "meta.yaml").write_text("end_time: null\nrun_id: abc\nrun_name: calm-fox\nstart_time: 1796095279219\nstatus: 1\nlifecycle_stage: active\n")
    return tmp_path


def test_bad_lines_are_counted_and_skipped(run: Path) -> None:
    (run / "metrics/loss").write_bytes(b"1000 1.5 0\nwhat\n2000 1.25 1\n3000 x 2\n\xff\xfe\n4000 1.0")
    signals, collector = read(run)
    assert signals["loss"].values.tolist() == [1.5, 1.25]
    assert signals["loss"].records is not None
    assert signals["loss"].records.tolist() == [1, 3]
    assert "4 lines" in collector.damage[0].what  # the last one has lost its step, and perhaps more


def test_file_that_ends_inside_a_step(run: Path) -> None:
    (run / "metrics/loss").write_bytes(b"1000 1.5 99\n2000 1.25 100\n3000 1.0 10")
    signals, collector = read(run)
    assert signals["loss"].steps.tolist() == [99, 100]
    assert "line 3" in collector.damage[0].what


def test_step_beyond_64_bits(run: Path) -> None:
    (run / "metrics/loss").write_text(f"1000 1.5 {2**70}\n")
    (run / "metrics/lr").write_text("1000 1.5 0\n")
    signals, collector = read(run)
    assert list(signals) == ["lr"]
    assert len(collector.damage) == 1


def test_damaged_meta_is_not_claimed(run: Path) -> None:
    (run / "meta.yaml").write_bytes(b"\x00\xff garbage")
    assert mlflow_files.sniff(Source.of(run)) is None


def test_folder_that_may_not_be_entered(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    source = Source.of(run)
    monkeypatch.setattr(Path, "is_file", refuse)
    assert mlflow_files.sniff(source) is None


def test_experiment_folder_and_deleted_run_are_no_runs(run: Path) -> None:
    (run / "meta.yaml").write_text("experiment_id: '0'\nname: Default\n")
    assert mlflow_files.sniff(Source.of(run)) is None
    (run / "meta.yaml").write_text("run_id: abc\nlifecycle_stage: deleted\n")
    assert mlflow_files.sniff(Source.of(run)) is None


@pytest.mark.parametrize("repeat", [1, 4000])
def test_words_columns_and_repeats(run: Path, repeat: int) -> None:
    (run / "metrics/loss").write_text("1000 nan 0\n2000 inf 1\n3000 -inf 2\n3000 -inf 2\n" * repeat)
    signals, collector = read(run)
    values = signals["loss"].values
    assert len(values) == 4 * repeat
    assert math.isnan(values[0])
    assert values[1:4].tolist() == [math.inf, -math.inf, -math.inf]
    assert not collector.damage


def test_names_and_further_columns(run: Path) -> None:
    (run / "metrics/train").mkdir()
    (run / "metrics/train/loss per step").write_text("1500 2.5 7\n")
    (run / "metrics/model").write_text("1500 2.5 7 dataset 0f0f\n" * 2000)
    signals, collector = read(run)
    assert signals["train/loss per step"].steps.tolist() == [7]
    assert signals["train/loss per step"].wall_times is not None
    assert signals["train/loss per step"].wall_times.tolist() == [1.5]
    assert len(signals["model"]) == 2000
    assert not collector.damage


@pytest.mark.parametrize(("code", "status", "finished"), [("1", "RUNNING", False), ("3", "FINISHED", True), ("4", "FAILED", True), ("5", "KILLED", True)])
def test_status(run: Path, code: str, status: str, finished: bool) -> None:
    (run / "meta.yaml").write_text(f"run_uuid: abc\nstatus: {code}\n")
    _, collector = read(run)
    assert collector.notes["status"] == status
    assert collector.notes["finished"] is finished


def test_real_store() -> None:
    folder = next(p.parent for p in FIXTURE.glob("*/*/meta.yaml"))
    signals, collector = read(folder)
    assert {name: len(s) for name, s in signals.items()} == dict.fromkeys(["batch_id", "grad_norm", "loss", "lr", "tokens_per_sec"], 40)
    assert collector.config["lr"] == 1.0 or isinstance(collector.config["lr"], float)
    assert collector.notes["status"] == "FINISHED"
    assert not collector.damage
