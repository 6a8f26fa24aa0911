from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from forensics.export import write_parquet
from forensics.loading import load
from forensics.model import SourceInfo, Span
from tests.unit.synthetic import run_of, signal_of

DEMO = Path(__file__).parents[2] / "forensics/demo_run"
COLUMNS = ["signal", "attempt", "step", "wall_time", "value", "value_int", "source"]


def test_an_empty_run_is_an_empty_table(tmp_path: Path) -> None:
    write_parquet(run_of({}), tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == COLUMNS
    assert len(table) == 0


def test_values_that_are_not_finite_and_large_integers_survive(tmp_path: Path) -> None:
    run = run_of({"loss": [1.0, np.nan, np.inf], "batch_id": np.array([2**60, 2**60 + 1, -1])})
    write_parquet(run, tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    loss, ids = table.filter(signal="loss"), table.filter(signal="batch_id")
    assert np.isnan(loss["value"][1])
    assert loss["value"][2] == np.inf
    assert loss["value_int"].null_count() == 3
    assert ids["value_int"].to_list() == [2**60, 2**60 + 1, -1]
    assert ids["value"][2] == -1.0


def test_attempts_sources_and_times(tmp_path: Path) -> None:
    loss = signal_of("loss", [3.0, 2.0, 1.0, 2.0], [0, 1, 2, 1], starts=(0, 3), wall_times=np.array([1.0, 2.0, 3.0, 9.0]))
    run = run_of({"loss": replace(loss, spans=(Span(0, 0, 3), Span(1, 3, 4)))})
    run = replace(run, sources=(SourceInfo("a.csv", "csv", 3), SourceInfo("b.csv", "csv", 1)))
    write_parquet(run, tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table["attempt"].to_list() == [0, 0, 0, 1]
    assert table["source"].to_list() == ["a.csv", "a.csv", "a.csv", "b.csv"]
    assert table["wall_time"].to_list() == [1.0, 2.0, 3.0, 9.0]
    assert table["step"].to_list() == [0, 1, 2, 1]


def test_a_real_run_comes_back_point_by_point(tmp_path: Path) -> None:
    run = load(DEMO)
    write_parquet(run, tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert len(table) == sum(len(s) for s in run.signals)
    for signal in run.signals:
        rows = table.filter(signal=signal.name)
        assert rows["step"].to_numpy().tolist() == signal.steps.tolist()
        np.testing.assert_array_equal(rows["value"].to_numpy(), signal.values.astype(np.float64))
