"""``forensics inspect --export`` gives back every point of every format, as independent readers see them."""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from forensics.cli.main import main
from tests.fuzz.samples import samples

FIXTURES = Path(__file__).parents[2] / "fixtures"

Row = tuple[int, float | int]


@dataclass(frozen=True, slots=True)
class Exported:
    table: pl.DataFrame
    code: int

    def rows(self, name: str) -> list[Row]:
        """(step, value) in the order written; whole numbers as they were."""
        found = self.table.filter(signal=name)
        return [(step, value if whole is None else whole) for step, value, whole in zip(found["step"], found["value"], found["value_int"], strict=True)]


def export(path: Path, tmp_path: Path) -> Exported:
    out = tmp_path / "out.parquet"
    code = main(["inspect", str(path), "--export", str(out), "--quiet"])
    table = pl.read_parquet(out)
    assert table.columns == ["signal", "attempt", "step", "wall_time", "value", "value_int", "source"]
    assert table["source"].null_count() == 0
    assert all(Path(source).exists() for source in table["source"].unique())
    return Exported(table, code)


def same(found: list[Row], expected: list[Row]) -> None:
    assert len(found) == len(expected)
    for (step, value), (other_step, other) in zip(found, expected, strict=True):
        assert step == other_step
        assert type(value) is type(other)
        assert value == other or (math.isnan(value) and math.isnan(other))


def test_large_integers_nan_and_negative_steps(tmp_path: Path) -> None:
    lines = [
        '{"step": -2, "loss": 1.5, "id": 1152921504606846977, "time": 1700000000.25}',
        '{"step": 0, "loss": NaN, "id": 9223372036854775807, "time": 1700000001.25}',
        '{"step": 9007199254740993, "loss": -Infinity, "id": -9223372036854775808, "time": 1700000002.25}',
        '{"step": 9007199254740994, "loss": 5e-324, "id": 0, "time": 1700000003.25}',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    found = export(tmp_path / "metrics.jsonl", tmp_path)
    same(found.rows("loss"), [(-2, 1.5), (0, math.nan), (2**53 + 1, -math.inf), (2**53 + 2, 5e-324)])
    same(found.rows("id"), [(-2, 2**60 + 1), (0, 2**63 - 1), (2**53 + 1, -(2**63)), (2**53 + 2, 0)])
    assert found.table.filter(signal="loss")["wall_time"].to_list() == [1700000000.25, 1700000001.25, 1700000002.25, 1700000003.25]
    assert found.code == 0


def test_csv(tmp_path: Path) -> None:
    folder = FIXTURES / "csv/sparse_eval"
    found = export(folder, tmp_path)
    expected: dict[str, list[Row]] = {}
    with (folder / "metrics.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for name, cell in row.items():
                if cell and name != "step":
                    expected.setdefault(name, []).append((int(row["step"]), int(cell) if cell.lstrip("-").isdigit() else float(cell)))
    assert set(found.table["signal"]) == set(expected)
    for name, rows in expected.items():
        whole = all(isinstance(value, int) for _, value in rows)
        same(found.rows(name), rows if whole else [(step, float(value)) for step, value in rows])


def test_json_lines(tmp_path: Path) -> None:
    folder = FIXTURES / "jsonl/olmo_names"
    found = export(folder, tmp_path)
    expected: dict[str, list[Row]] = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for name in entry.keys() - {"step"}:
            expected.setdefault(name, []).append((entry["step"], entry[name]))
    assert set(found.table["signal"]) == set(expected)
    for name, rows in expected.items():
        same(found.rows(name), rows)


def test_trainer_state(tmp_path: Path) -> None:
    folder = FIXTURES / "hf/trainer"
    found = export(folder, tmp_path)
    expected: dict[str, list[Row]] = {}
    for entry in json.loads((folder / "trainer_state.json").read_text())["log_history"]:
        if "train_runtime" in entry:
            continue
        for name in entry.keys() - {"step"}:
            expected.setdefault(name, []).append((entry["step"], entry[name]))
    for name, rows in expected.items():
        whole = all(isinstance(value, int) for _, value in rows)
        same(found.rows(name), rows if whole else [(step, float(value)) for step, value in rows])


def test_mlflow_files(tmp_path: Path) -> None:
    run = next(FIXTURES.glob("mlflow/mlruns/*/*/metrics")).parent
    found = export(run, tmp_path)
    for path in (run / "metrics").iterdir():
        lines = [line.split() for line in path.read_text().splitlines()]
        same(found.rows(path.name), [(int(step), float(value)) for _, value, step in lines])
        assert found.table.filter(signal=path.name)["wall_time"].to_list() == [int(time) / 1000 for time, _, _ in lines]


def test_mlflow_sqlite(tmp_path: Path) -> None:
    sample = next(s for s in samples(tmp_path / "made") if s.format == "mlflow_sqlite")
    found = export(sample.folder / sample.file, tmp_path)
    with closing(sqlite3.connect(sample.folder / sample.file)) as database:
        for name in ("loss", "grad_norm"):
            rows = database.execute("SELECT step, value, is_nan, timestamp FROM metrics WHERE key = ? ORDER BY rowid", (name,)).fetchall()
            same(found.rows(name), [(step, math.nan if nan else value) for step, value, nan, _ in rows])
            assert found.table.filter(signal=name)["wall_time"].to_list() == [time / 1000 for *_, time in rows]


@pytest.mark.parametrize("folder", ["torch", "tensorboardx", "tensor_float_val"])
def test_tensorboard(folder: str, tmp_path: Path) -> None:
    expected = json.loads((FIXTURES / "tensorboard/expected.json").read_text())
    (file,) = (name for name in expected if name.startswith(f"{folder}/"))
    found = export(FIXTURES / "tensorboard" / folder, tmp_path)
    for name, rows in expected[file].items():
        same(found.rows(name), [(step, float(value)) for step, value in rows])
    assert found.table["wall_time"].null_count() == 0
    assert found.table["wall_time"].min() > 1e9  # type: ignore[operator]


def test_restart_keeps_both_attempts(tmp_path: Path) -> None:
    expected = json.loads((FIXTURES / "tensorboard/expected.json").read_text())
    first, second = sorted(name for name in expected if name.startswith("restart/"))
    found = export(FIXTURES / "tensorboard/restart", tmp_path)
    for name in expected[first]:
        same(found.rows(name), [(step, float(value)) for file in (first, second) for step, value in expected[file][name]])
        rows = found.table.filter(signal=name)
        assert rows["attempt"].to_list() == [0] * len(expected[first][name]) + [1] * len(expected[second][name])
        assert [Path(source).name for source in rows["source"].unique(maintain_order=True)] == [Path(first).name, Path(second).name]


def test_wandb(tmp_path: Path) -> None:
    expected = json.loads((FIXTURES / "wandb/expected.json").read_text())
    found = export(FIXTURES / "wandb/run-fixture1.wandb", tmp_path)
    checked = 0
    for name in set(expected) & set(found.table["signal"]):
        rows = found.rows(name)
        whole = found.table.filter(signal=name)["value_int"].null_count() == 0
        same(rows, [(step, int(value) if whole else float(value)) for _, step, value in expected[name]])
        checked += 1
    assert checked >= 5
    assert found.rows("data/batch/id")[0][1] > 2**53


def test_console_log(tmp_path: Path) -> None:
    found = export(FIXTURES / "console/bloom.log", tmp_path)
    text = (FIXTURES / "console/bloom.log").read_text()
    expected = [(int(step), float(loss)) for step, loss in re.findall(r"iteration +(\d+)/.*?lm loss: (\S+)", text)]
    assert len(expected) > 3
    same(found.rows("lm loss"), expected)


def test_damage_still_exports_the_rest(tmp_path: Path) -> None:
    lines = (FIXTURES / "jsonl/olmo_names/metrics.jsonl").read_text().splitlines()
    lines[5] = lines[5][:40]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    found = export(tmp_path / "metrics.jsonl", tmp_path)
    assert found.code == 3
    assert len(found.rows("train/CrossEntropyLoss")) == len([line for line in lines if "CrossEntropyLoss" in line and "train/" in line and line.endswith("}")])
