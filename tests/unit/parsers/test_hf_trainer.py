"""trainer_state.json: damage first, then near misses, then real files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Signal
from forensics.parsers import hf_trainer
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector

FIXTURES = Path(__file__).parents[3] / "fixtures/hf"


def read(path: Path, data: bytes | str | None = None) -> tuple[dict[str, Signal], Collector]:
    if data is not None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    collector = Collector()
    hf_trainer.parse(Source.of(path), collector.sink(str(path), "hf_trainer"), RunKey())
    return {s.name: s for s in collector.signals()}, collector


def state(entries: list[dict[str, object]], **more: object) -> str:
    return json.dumps({"global_step": 100, "log_history": entries, "max_steps": 200, "logging_steps": 10, **more}, indent=2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trainer_state.json"


def test_cut_file_gives_every_complete_entry(file: Path) -> None:
    whole = state([{"loss": 1.0 / (i + 1), "step": i} for i in range(1000)])
    signals, collector = read(file, whole[: whole.index('"step": 540')])
    assert len(signals["loss"]) == 540
    assert "540 entries were read" in collector.damage[0].lost
    assert collector.notes["global_step"] == 100


def test_broken_after_540_good_entries(file: Path) -> None:
    whole = state([{"loss": 1.0, "step": i} for i in range(1000)])
    at = whole.index('"step": 540')
    signals, collector = read(file, whole[:at] + '"step": 5x40' + whole[at + 11 :])
    assert len(signals["loss"]) == 540
    assert len(collector.damage) == 1


def test_nesting_of_ten_thousand_levels(file: Path) -> None:
    good = '{"loss": 1.5, "step": 1}'
    signals, collector = read(file, '{"log_history": [' + good + ", " + "[" * 10_000 + "]" * 10_000 + "]}")
    assert len(signals["loss"]) == 1
    assert "nested too deeply" in collector.damage[0].what


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"log_history": 5}', '{"a": 1}', "\x00" * 50, '{"log_history": [1, "x", null, {"step": "a"}]}'])
def test_nothing_to_read_is_damage(file: Path, text: str) -> None:
    signals, collector = read(file, text)
    assert not signals
    assert collector.damage


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(max_examples=150, deadline=None)
def test_any_splice_is_survived(tmp_path_factory: pytest.TempPathFactory, splice: bytes, at: int) -> None:
    path = tmp_path_factory.mktemp("hf") / "trainer_state.json"
    whole = state([{"loss": 1.0, "step": i} for i in range(10)]).encode()
    read(path, whole[:at] + splice + whole[at + len(splice) :])


def test_bare_nan(file: Path) -> None:
    signals, collector = read(file, '{"log_history": [{"loss": NaN, "grad_norm": Infinity, "step": 1}, {"loss": 2, "grad_norm": -Infinity, "step": 2}]}')
    assert math.isnan(signals["loss"].values[0])
    assert signals["grad_norm"].values.tolist() == [math.inf, -math.inf]
    assert not collector.damage


def test_summary_rows_are_no_curves(file: Path) -> None:
    rows: list[dict[str, object]] = [
        {"loss": 2.0, "step": 10, "epoch": 0.5},
        {"eval_loss": 3.0, "eval_runtime": 1.5, "step": 10, "epoch": 0.5},
        {"train_loss": 2.5, "train_runtime": 60.0, "train_samples_per_second": 1, "train_steps_per_second": 1, "total_flos": 1e9, "step": 10, "epoch": 0.5},
    ]
    signals, _ = read(file, state(rows))
    assert set(signals) == {"loss", "epoch", "eval_loss", "eval_runtime"}
    assert signals["epoch"].records is not None
    assert signals["epoch"].records.tolist() == [1, 2, 3]


def test_texts_are_left_out_and_numeric_texts_taken(file: Path) -> None:
    signals, _ = read(file, state([{"loss": "9.276", "remaining_time": "59h:30m", "ok": True, "step": 1}, {"loss": 9.0, "step": 2}]))
    assert signals["loss"].values.tolist() == [9.276, 9.0]
    assert "remaining_time" not in signals


def test_first_difference() -> None:
    def history(*losses: float) -> hf_trainer.History:
        return hf_trainer.History(tuple({"loss": x, "step": 10 * i} for i, x in enumerate(losses)), {})

    newest = history(3, 2, math.nan, 1)
    assert hf_trainer.first_difference(newest, history(3, 2, math.nan)) is None
    assert hf_trainer.first_difference(newest, history(3, 2, 2.5)) == 20
    assert hf_trainer.first_difference(newest, history(3, 2, math.nan, 1, 0)) == 40


def test_claims(file: Path) -> None:
    file.write_text(state([]))
    claim = hf_trainer.sniff(Source.of(file))
    assert claim is not None
    assert claim.runs[0].order == 100
    other = file.with_name("config.json")
    other.write_text('{"global_step": 1}')
    assert hf_trainer.sniff(Source.of(other)) is None


def test_notes(file: Path) -> None:
    _, collector = read(file, state([{"loss": 1.0, "step": 1}]))
    assert collector.notes == {"global_step": 100, "max_steps": 200, "logging_steps": 10, "nan_filter_possible": True}
    assert collector.config["max_steps"] == 200


@pytest.mark.parametrize(("name", "counts"), [("trainer", {"loss": 21, "eval_loss": 1}), ("custom_keys", {"loss": 6, "grad_norm": 6, "lr": 6})])
def test_real_files(name: str, counts: dict[str, int]) -> None:
    signals, collector = read(FIXTURES / name / "trainer_state.json")
    assert {key: len(signals[key]) for key in counts} == counts
    assert not collector.damage
