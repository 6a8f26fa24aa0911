"""CSV: damage first, then near misses, then the plain case."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Signal
from forensics.parsers import csv_table
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector

FIXTURE = Path(__file__).parents[3] / "fixtures/csv/sparse_eval/metrics.csv"


def read(path: Path, data: bytes | str | None = None) -> tuple[dict[str, Signal], Collector]:
    if data is not None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    collector = Collector()
    csv_table.parse(Source.of(path), collector.sink(str(path), "csv"), RunKey())
    return {s.name: s for s in collector.signals()}, collector


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metrics.csv"


def test_ragged_lines_cost_only_their_cells(file: Path) -> None:
    signals, collector = read(file, "step,loss,lr\n0,5,0.1\n1,4\n2,3,0.1,9,9\n3,2,0.1\n")
    assert signals["loss"].steps.tolist() == [0, 1, 2, 3]
    assert signals["lr"].steps.tolist() == [0, 2, 3]
    assert signals["lr"].records is not None
    assert signals["lr"].records.tolist() == [2, 4, 5]
    assert "2 lines" in collector.damage[0].what
    assert "line 3" in collector.damage[0].what


def test_cut_last_line_loses_the_cell_that_may_be_cut(file: Path) -> None:
    signals, collector = read(file, "step,loss,lr\n0,5,0.1\n1,4,0.1\n2,0.01")
    assert signals["loss"].values.tolist() == [5, 4]
    assert len(collector.damage) == 1


def test_foreign_bytes_cost_one_cell(file: Path) -> None:
    rows = b"".join(b"%d,%d.5\n" % (i, i) for i in range(20))
    signals, collector = read(file, b"step,loss\n" + rows + b"20,\xff\xfe\xfd\n\x00\x00\x00\x00\n21,7\n")
    assert len(signals["loss"]) == 21
    assert collector.damage


def test_cell_of_a_megabyte(file: Path) -> None:
    rows = "".join(f"{i},{i}.5,ok\n" for i in range(5))
    signals, collector = read(file, "step,loss,text\n" + rows + f'5,5.5,"{"x" * 1_000_000}"\n6,6.5,ok\n')
    assert signals["loss"].steps.tolist() == list(range(7))
    assert not collector.damage
    assert "text" not in signals


def test_stray_quote_does_not_swallow_the_file(file: Path) -> None:
    rows = "".join(f"{i},{i}.5\n" for i in range(3, 100))
    signals, _ = read(file, 'step,loss\n0,1.0\n1,"2.0\n2,2.5\n' + rows)
    assert len(signals["loss"]) >= 97


def test_bad_cell_among_numbers_is_damage(file: Path) -> None:
    rows = "".join(f"{i},{i}.25\n" for i in range(3000))
    signals, collector = read(file, "step,loss\n" + rows + "3000,1.2.3\n")
    assert len(signals["loss"]) == 3000
    assert "1 cells" in collector.damage[0].what
    assert "line 3002" in collector.damage[0].what


@pytest.mark.parametrize("data", [b"", b"\n", b"step,loss\n", b"\x00" * 100, b"a,b\nx,y\n", b'"' * 99, b",,,,\n1,2,3,4\n"])
def test_not_a_table_of_numbers(file: Path, data: bytes) -> None:
    signals, _ = read(file, data)
    assert not signals


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.mktemp("csv") / "metrics.csv"
    signals, _ = read(path, b"step,loss\n0,1.5\n1,2.5\n" + tail)
    assert signals["loss"].values[0] == 1.5


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(file: Path, end: str) -> None:
    signals, collector = read(file, end.join(["step,loss,note", "0,1.5,x", "10,nan,y", "20,-inf,z"]) + end)
    assert signals["loss"].steps.tolist() == [0, 10, 20]
    assert math.isnan(signals["loss"].values[1])
    assert signals["loss"].values[2] == -math.inf
    assert not collector.damage


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(file: Path, encoding: str) -> None:
    text = "step,loss,größe\n" + "".join(f"{i},{i}.5,1\n" for i in range(9))
    signals, _ = read(file, text.encode(encoding))
    assert signals["loss"].values.tolist() == [i + 0.5 for i in range(9)]


def test_padded_names_and_cells(file: Path) -> None:
    signals, _ = read(file, "               epoch,      train/box_loss\n                   0,             0.11915\n                   1,              0.1\n")
    assert signals["train/box_loss"].steps.tolist() == [0, 1]
    assert signals["train/box_loss"].values.tolist() == [0.11915, 0.1]


def test_empty_cells_are_no_points_and_rows_of_one_step_stay_apart(file: Path) -> None:
    signals, collector = read(file, "epoch,step,train_loss,val_loss\n0,9,1.5,\n0,9,,2.5\n1,19,1.0,\n1,19,,2.0\n")
    assert signals["train_loss"].steps.tolist() == [9, 19]
    assert signals["val_loss"].steps.tolist() == [9, 19]
    assert signals["val_loss"].records is not None
    assert signals["val_loss"].records.tolist() == [3, 5]
    assert signals["epoch"].values.tolist() == [0, 0, 1, 1]
    assert "step_axis" not in collector.notes


def test_integers_stay_exact_also_where_they_start_late(file: Path) -> None:
    big = 2**60 + 1
    rows = "".join(f"{i},{i},{big + i}\n" for i in range(5000))
    signals, _ = read(file, "step,loss,batch_id\n" + rows + "5000,0.25,7\n")
    assert signals["batch_id"].values.dtype == np.int64
    assert signals["batch_id"].values[1] == big + 1
    assert signals["loss"].values[-1] == 0.25


def test_without_step_column_the_row_number_counts(file: Path) -> None:
    signals, collector = read(file, "loss,lr\n5,1\n4,1\n3,1\n")
    assert signals["loss"].steps.tolist() == [0, 1, 2]
    assert collector.notes["step_axis"] == "row number"


def test_epoch_is_an_axis_only_where_it_is_not_repeated(file: Path) -> None:
    signals, collector = read(file, "epoch,loss\n" + "".join(f"{i // 100},{i}\n" for i in range(400)))
    assert signals["loss"].steps.tolist() == list(range(400))
    assert collector.notes["step_axis"] == "row number"
    signals, collector = read(file, "epoch,loss\n" + "".join(f"{i},{i}\n" for i in range(40)))
    assert signals["loss"].steps.tolist() == list(range(40))
    assert "step_axis" not in collector.notes


def test_rows_without_a_step_are_noted(file: Path) -> None:
    signals, collector = read(file, "step,loss\n0,1\n,2\n2,3\n")
    assert signals["loss"].steps.tolist() == [0, 2]
    assert collector.notes["rows_without_step"] == 1


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2026-12-01T00:00:00Z", "2026-12-01T00:00:05Z"], 1796083200.0),
        (["2026-12-01 00:00:00", "2026-12-01 00:00:05"], 1796083200.0),
        (["1796083200.5", "1796083205.5"], 1796083200.5),
        (["1796083200500", "1796083205500"], 1796083200.5),
    ],
)
def test_time_columns_become_wall_times(file: Path, cells: list[str], first: float) -> None:
    signals, _ = read(file, f"step,loss,timestamp\n0,1,{cells[0]}\n1,2,{cells[1]}\n")
    assert signals["loss"].wall_times is not None
    assert signals["loss"].wall_times.tolist() == [first, first + 5]


def test_relative_time_is_no_wall_time(file: Path) -> None:
    signals, _ = read(file, "step,loss,time\n0,1,0.5\n1,2,1.5\n")
    assert signals["loss"].wall_times is None
    assert signals["time"].values.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_separators_and_quotes(file: Path, separator: str) -> None:
    lines = ['"Step"', '"train, loss"'], ['"1"', '"2.5"'], ['"2"', '"NaN"']
    signals, collector = read(file, "\n".join(separator.join(cells) for cells in lines) + "\n")
    assert signals["train, loss"].steps.tolist() == [1, 2]
    assert not collector.damage


def test_header_written_again_by_a_restarted_process(file: Path) -> None:
    signals, collector = read(file, "step,loss\n0,1\n1,2\nstep,loss\n1,3\n2,4\n")
    assert signals["loss"].steps.tolist() == [0, 1, 1, 2]
    assert collector.notes["header_repeated"] == 1
    assert not collector.damage


def test_quoted_columns_with_missing_cells(file: Path) -> None:
    signals, collector = read(file, '"step","loss","lr"\n"0","1.5","0.1"\n"1","2.5"\n"2","","0.1"\n')
    assert signals["loss"].steps.tolist() == [0, 1]
    assert signals["lr"].steps.tolist() == [0, 2]
    assert len(collector.damage) == 1


def test_export_of_the_wandb_page(file: Path) -> None:
    rows = "".join(f'"{i}","{i}.5","{i}.4","{i}.6"\n' for i in range(5))
    signals, collector = read(file, '"Step","calm-fox-1 - train/loss","calm-fox-1 - train/loss__MIN","calm-fox-1 - train/loss__MAX"\n' + rows)
    assert list(signals) == ["train/loss"]
    assert signals["train/loss"].values.tolist() == [i + 0.5 for i in range(5)]
    assert collector.notes["run_name"] == "calm-fox-1"
    signals, _ = read(file, '"Step","fox - loss","owl - loss"\n"0","1","2"\n')
    assert set(signals) == {"fox - loss", "owl - loss"}


def test_last_line_without_end_is_noted(file: Path) -> None:
    signals, collector = read(file, "step,loss\n0,1.5\n1,2.5")
    assert len(signals["loss"]) == 2
    assert collector.notes["last_line_without_end"] == 3


def test_claims(file: Path) -> None:
    def confidence(text: str, path: Path = file) -> int:
        path.write_text(text)
        claim = csv_table.sniff(Source.of(path))
        return claim.confidence if claim else 0

    assert confidence("step,loss\n0,1\n") > confidence("step,height\n0,1\n") > confidence("width,height\n0,1\n") > 0
    assert confidence("name,city\nx,y\n") == 0
    assert confidence("step,loss\n0,1\n", file.with_suffix(".txt")) > 35
    assert confidence("Some words, and more\nof a text, 3\n", file.with_suffix(".txt")) == 0
    assert confidence('{"step": 1, "loss": 2}\n', file) == 0


def test_real_file() -> None:
    signals, collector = read(FIXTURE)
    assert {name: len(s) for name, s in signals.items()} == {
        "train_loss_step": 24,
        "lr-AdamW": 24,
        "grad_2.0_norm_total": 24,
        "batch_idx": 24,
        "tokens_per_sec": 24,
        "val_loss": 1,
    }
    assert not collector.damage
    assert signals["val_loss"].steps[0] == 199
