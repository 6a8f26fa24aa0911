"""Parquet, JSON documents, gzip, decimal commas, and exports of several runs: damage first."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forensics.errors import InputError, SeveralRunsError
from forensics.loading import load
from forensics.model import Run

N = 40
LOSS = 2.0 + np.exp(-np.arange(N) / 9.0)


def curve(run: Run, name: str = "loss") -> tuple[list[int], list[float]]:
    signal = next(s for s in run.signals if s.name == name)
    return signal.steps.tolist(), signal.values.tolist()


def whole(run: Run, name: str = "loss") -> None:
    assert curve(run, name) == (list(range(N)), LOSS.tolist())
    assert not run.damage


class TestParquet:
    def test_a_torn_file_is_said(self, tmp_path: Path) -> None:
        pl.DataFrame({"step": np.arange(N), "loss": LOSS}).write_parquet(tmp_path / "m.parquet")
        data = (tmp_path / "m.parquet").read_bytes()
        (tmp_path / "m.parquet").write_bytes(data[: len(data) // 2])
        with pytest.raises(InputError, match="cannot be read"):
            load(tmp_path)

    def test_rows_without_a_step_and_nested_columns_are_said(self, tmp_path: Path) -> None:
        steps = [None, *range(1, N)]
        table = pl.DataFrame({"signal": ["loss"] * N, "step": steps, "value": LOSS, "media": [[1, 2]] * N})
        table.write_parquet(tmp_path / "m.parquet")
        run = load(tmp_path)
        assert curve(run)[0] == list(range(1, N))
        assert [d.lost for d in run.damage] == ["1 points"]
        assert run.notes["nested_columns"] == ["media"]

    def test_a_wide_table_keeps_gaps_and_nan(self, tmp_path: Path) -> None:
        values = [None if i % 2 else (np.nan if i == 4 else LOSS[i]) for i in range(N)]
        pl.DataFrame({"step": np.arange(N), "loss": values, "note": ["x"] * N}).write_parquet(tmp_path / "m.parquet")
        steps, read = curve(load(tmp_path))
        assert steps == list(range(0, N, 2))
        assert np.isnan(read[2])
        assert np.isfinite(np.delete(read, 2)).all()

    def test_a_long_table_keeps_whole_numbers(self, tmp_path: Path) -> None:
        big = 2**60 + 1
        rows = {"signal": ["loss"] * N + ["tokens"] * 2, "step": [*range(N), 0, 1], "value": [*LOSS, float(big), 2.0], "value_int": [None] * N + [big, 2]}
        pl.DataFrame(rows).write_parquet(tmp_path / "m.parquet")
        run = load(tmp_path)
        whole(run)
        assert curve(run, "tokens")[1] == [big, 2]


class TestJsonDocuments:
    def test_a_cut_list_keeps_the_rows_before_the_cut(self, tmp_path: Path) -> None:
        text = json.dumps([{"step": i, "loss": float(LOSS[i])} for i in range(N)])
        (tmp_path / "history.json").write_text(text[: text.index('"step": 30') + 4])
        run = load(tmp_path)
        assert curve(run)[0] == list(range(30))
        assert "entry 31 is broken" in run.damage[0].what

    def test_deep_nesting_ends_in_damage(self, tmp_path: Path) -> None:
        rows = json.dumps([{"step": i, "loss": float(LOSS[i])} for i in range(N)])
        (tmp_path / "history.json").write_text(rows[:-1] + "," + "[" * 100_000)
        run = load(tmp_path)
        assert curve(run)[0] == list(range(N))
        assert run.damage

    def test_a_list_that_is_no_log_is_not_taken(self, tmp_path: Path) -> None:
        (tmp_path / "data.json").write_text(json.dumps([{"question": "?", "length": 4}] * 9))
        with pytest.raises(InputError, match="nothing to read"):
            load(tmp_path)

    def test_rows(self, tmp_path: Path) -> None:
        (tmp_path / "history.json").write_text(json.dumps([{"step": i, "loss": float(LOSS[i])} for i in range(N)], indent=1))
        whole(load(tmp_path))

    def test_columns_of_other_lengths_have_steps_of_their_own(self, tmp_path: Path) -> None:
        (tmp_path / "history.json").write_text(json.dumps({"loss": LOSS.tolist(), "val_loss": [1.0, 2.0], "optimizer": "adam"}))
        run = load(tmp_path)
        whole(run)
        assert curve(run, "val_loss") == ([0, 1], [1.0, 2.0])


class TestGzip:
    def text(self) -> bytes:
        return "".join(json.dumps({"step": i, "loss": float(LOSS[i])}) + "\n" for i in range(N)).encode()

    def test_a_cut_stream_keeps_what_comes_before(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(0)
        lines = b"".join(json.dumps({"step": i, "loss": float(noise.random())}).encode() + b"\n" for i in range(5000))
        packed = gzip.compress(lines)
        (tmp_path / "log.jsonl.gz").write_bytes(packed[: len(packed) // 2])
        run = load(tmp_path)
        assert 1000 < len(run.signals[0]) < 4000
        assert any("cut" in d.what for d in run.damage)

    def test_a_file_that_only_looks_packed(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv.gz").write_bytes(b"\x1f\x8b" + b"\x00" * 100)
        with pytest.raises(InputError):
            load(tmp_path)

    def test_members_that_follow_each_other(self, tmp_path: Path) -> None:
        text = self.text()
        (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(text[: text.index(b"\n") + 1]) + gzip.compress(text[text.index(b"\n") + 1 :]))
        whole(load(tmp_path))

    def test_console_logs_too(self, tmp_path: Path) -> None:
        lines = "".join(f"step {i} loss {LOSS[i]:.4f} lr 1e-4\n" for i in range(N))
        (tmp_path / "train.log.gz").write_bytes(gzip.compress(lines.encode()))
        assert curve(load(tmp_path))[0] == list(range(N))


class TestExports:
    def test_decimal_commas(self, tmp_path: Path) -> None:
        rows = "".join(f"{i};{str(float(LOSS[i])).replace('.', ',')}\r\n" for i in range(N))
        (tmp_path / "log.csv").write_bytes(("step;loss\r\n" + rows).encode())
        whole(load(tmp_path))

    def test_texts_with_commas_stay_texts(self, tmp_path: Path) -> None:
        rows = "".join(f"{i};{LOSS[i]};a,b\n" for i in range(N))
        (tmp_path / "log.csv").write_text("step;loss;tags\n" + rows)
        assert [s.name for s in load(tmp_path).signals] == ["loss"]

    def export(self, folder: Path, spread: str) -> None:
        names = ["Step", *(f"{run} - loss{end}" for run in ("run-a", "run-b") for end in ("", *(spread.split() if spread else ())))]
        rows = [",".join([str(i), *([str(float(LOSS[i]))] * (len(names) - 1))]) for i in range(N)]
        (folder / "export.csv").write_text(",".join(f'"{n}"' for n in names) + "\n" + "\n".join(rows) + "\n")

    def test_several_runs_of_an_export_are_told_apart(self, tmp_path: Path) -> None:
        self.export(tmp_path, "__MIN __MAX")
        with pytest.raises(SeveralRunsError) as several:
            load(tmp_path)
        assert [name for name, _ in several.value.runs] == ["run-a", "run-b"]
        whole(load(tmp_path, choose="run-b"))

    def test_curves_named_alike_are_one_run(self, tmp_path: Path) -> None:
        self.export(tmp_path, "")
        assert {s.name for s in load(tmp_path).signals} == {"run-a - loss", "run-b - loss"}


def test_json_lines_after_a_hostile_first_line(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"step": i, "loss": float(LOSS[i])}) + "\n" for i in range(N))
    (tmp_path / "log.jsonl").write_text("[" * 10_000 + "]" * 10_000 + "\n" + rows)
    run = load(tmp_path)
    assert curve(run) == (list(range(N)), LOSS.tolist())
    assert run.damage[0].lost == "1 rows"


def test_a_decimal_comma_is_not_taken_for_thousands(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n" + "".join(f'{i},"2,{i:03d}"\n' for i in range(50)))
    with pytest.raises(InputError, match="texts"):
        load(tmp_path / "log.csv")


def test_steps_with_commas_percent_signs_and_columns_of_one_name(tmp_path: Path) -> None:
    rows = "".join(f'"{100 * i:,}",{i / 4},{i}%,"1,000,{i:03d}",{i + 0.5}\n' for i in range(50))
    (tmp_path / "log.csv").write_text("step,loss,acc,tokens,loss\n" + rows)
    by_name = {s.name: s for s in load(tmp_path / "log.csv").signals}
    assert by_name["loss"].steps.tolist() == list(range(0, 5000, 100))
    assert by_name["acc"].values.tolist() == list(range(50))
    assert by_name["tokens"].values.tolist() == [1_000_000 + i for i in range(50)]
    assert by_name["loss.1"].values[3] == 3.5
