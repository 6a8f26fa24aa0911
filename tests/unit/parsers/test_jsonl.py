"""JSON lines: damage first, then near misses, then the plain case; the fast and the slow way must agree."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.loading import load
from forensics.model import Signal
from forensics.parsers import jsonl
from forensics.parsers.interface import RunKey, Source
from forensics.parsers.sink import Collector

FIXTURE = Path(__file__).parents[3] / "fixtures/jsonl/olmo_names/metrics.jsonl"


def read(path: Path, data: bytes | str | None = None) -> tuple[dict[str, Signal], Collector]:
    if data is not None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    collector = Collector()
    jsonl.parse(Source.of(path), collector.sink(str(path), "jsonl"), RunKey())
    return {s.name: s for s in collector.signals()}, collector


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def row(step: int, **values: object) -> str:
    return json.dumps({"step": step, **values}) + "\n"


def test_bad_lines_are_counted_and_skipped(file: Path) -> None:
    signals, collector = read(file, row(0, loss=5.0) + "{broken\n" + "[1, 2]\n7\n" + row(1, loss=4.0) + '{"step": 2, "lo')
    assert signals["loss"].steps.tolist() == [0, 1]
    assert signals["loss"].records is not None
    assert signals["loss"].records.tolist() == [1, 5]
    assert "4 lines" in collector.damage[0].what
    assert "line 2, 3, 4, 6" in collector.damage[0].what


def test_nesting_of_ten_thousand_levels(file: Path) -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    signals, collector = read(file, row(0, loss=5.0) + deep + "\n" + row(1, loss=4.0))
    assert signals["loss"].steps.tolist() == [0, 1]
    assert len(collector.damage) == 1


def test_two_writers_on_one_line(file: Path) -> None:
    signals, collector = read(file, row(0, loss=5.0).strip() + row(1, loss=4.0) + row(2, loss=3.0))
    assert signals["loss"].steps.tolist() == [0, 1, 2]
    assert not collector.damage


def test_zeros_of_a_crash_at_the_end(file: Path) -> None:
    signals, collector = read(file, row(0, loss=5.0).encode() + b"\x00" * 500)
    assert len(signals["loss"]) == 1
    assert len(collector.damage) == 1


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_bare_words_are_numbers(file: Path, value: str) -> None:
    lines = "".join(f'{{"step": {i}, "loss": {value if i % 3 == 0 else i}, "lr":{value}}}\n' for i in range(9))
    signals, collector = read(file, lines)
    expected = [float(value) if i % 3 == 0 else float(i) for i in range(9)]
    np.testing.assert_array_equal(signals["loss"].values, expected)
    np.testing.assert_array_equal(signals["lr"].values, [float(value)] * 9)
    assert not collector.damage


def test_words_inside_texts_are_left_alone(file: Path) -> None:
    lines = "".join(f'{{"step": {i}, "loss": NaN, "text": "a: NaN, b"}}\n' for i in range(4))
    signals, collector = read(file, lines)
    assert np.isnan(signals["loss"].values).all()
    assert list(signals) == ["loss"]
    assert not collector.damage


def test_key_that_first_appears_late_in_a_large_file(file: Path) -> None:
    many = [row(i, loss=i / 7) for i in range(50_000)]
    many[40_000] = row(40_000, loss=1.0, val_loss=2.5)
    many[45_000] = row(45_000, loss=float("nan"), val_loss=3)
    signals, collector = read(file, "".join(many))
    assert signals["val_loss"].steps.tolist() == [40_000, 45_000]
    assert signals["val_loss"].values.tolist() == [2.5, 3.0]
    assert math.isnan(signals["loss"].values[45_000])
    assert not collector.damage


def test_late_damage_in_a_later_block(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "BLOCK", 4096)
    many = [row(i, loss=i) for i in range(2_000)]
    many[1_500] = "oops\n"
    many[1_900] = row(1_900, loss=0.5)
    signals, collector = read(file, "".join(many))
    assert len(signals["loss"]) == 1_999
    assert signals["loss"].records is not None
    assert signals["loss"].records[-1] == 2_000
    assert signals["loss"].values[1_899] == 0.5
    assert "line 1501" in collector.damage[0].what


def test_integers_above_2_to_53_stay_exact(file: Path) -> None:
    big = 2**60 + 1
    signals, _ = read(file, "".join(row(i, batch_id=big + i) for i in range(5)))
    assert signals["batch_id"].values.dtype == np.int64
    assert signals["batch_id"].values.tolist() == [big + i for i in range(5)]
    signals, _ = read(file, "".join(row(i, batch_id=2**70) for i in range(5)))
    assert signals["batch_id"].values[0] == float(2**70)


def test_nested_names_numeric_texts_and_booleans(file: Path) -> None:
    lines = "".join(row(i, train={"loss": 2.5, "aux": {"z": i}}, gnorm="1.5", overflow=i == 1, note="text", hist=[1, 2]) for i in range(3))
    signals, _ = read(file, lines)
    assert signals["train/loss"].values.tolist() == [2.5] * 3
    assert signals["train/aux/z"].values.tolist() == [0, 1, 2]
    assert signals["gnorm"].values.tolist() == [1.5] * 3
    assert signals["overflow"].values.tolist() == [0, 1, 0]
    assert "note" not in signals
    assert "hist" not in signals


def test_nulls_are_no_points_but_noted(file: Path) -> None:
    signals, collector = read(file, row(0, loss=1.0) + row(1, loss=None) + row(2, loss=2.0))
    assert signals["loss"].steps.tolist() == [0, 2]
    assert collector.notes["null_values"] == {"loss": 1}


def test_blank_lines_keep_line_numbers_true(file: Path) -> None:
    signals, collector = read(file, row(0, loss=1.0) + "\n\n" + row(1, loss=2.0))
    assert signals["loss"].records is not None
    assert signals["loss"].records.tolist() == [1, 4]
    assert not collector.damage


def test_byte_order_mark(file: Path) -> None:
    signals, collector = read(file, b"\xef\xbb\xbf" + (row(0, loss=1.0) + row(1, loss=2.0)).encode())
    assert signals["loss"].steps.tolist() == [0, 1]
    assert not collector.damage
    assert jsonl.sniff(Source.of(file)) is not None


def test_lines_without_a_step(file: Path) -> None:
    signals, collector = read(file, '{"config": {"lr": 0.1}}\n' + row(0, loss=1.0) + row(1, loss=2.0))
    assert signals["loss"].steps.tolist() == [0, 1]
    assert collector.notes["rows_without_step"] == 1


json_values = st.one_of(
    st.floats(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none(), st.text(max_size=5), st.just({"a": 1.5}), st.just([1])
)


@given(st.lists(st.dictionaries(st.sampled_from(["loss", "lr", "a:b", 'q"', "null"]), json_values, max_size=4), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_fast_and_slow_agree(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "metrics.jsonl"
    data = "".join(json.dumps({"step": i, **values}) + "\n" for i, values in enumerate(rows)).encode()
    fast, _ = read(path, data)
    slow_reading = jsonl._Reading()
    jsonl._read_lines(data, slow_reading)
    collector = Collector()
    columns = {name: jsonl.join(parts, slow_reading.rows) for name, parts in slow_reading.parts.items()}
    jsonl.emit(columns, np.concatenate(slow_reading.lines), collector.sink("x", "jsonl"))
    slow = {s.name: s for s in collector.signals()}
    assert fast.keys() == slow.keys()
    for name, signal in fast.items():
        np.testing.assert_array_equal(signal.values, slow[name].values)
        np.testing.assert_array_equal(signal.steps, slow[name].steps)
        np.testing.assert_array_equal(signal.records, slow[name].records)


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "metrics.jsonl"
    signals, _ = read(path, row(0, loss=1.5).encode() + tail)
    assert signals["loss"].values[0] == 1.5


def test_claims(tmp_path: Path) -> None:
    def confidence(name: str, text: str) -> int:
        path = tmp_path / name
        path.write_text(text)
        claim = jsonl.sniff(Source.of(path))
        return claim.confidence if claim else 0

    assert 0 < confidence("data.jsonl", '{"text": "x", "length": 5}\n') < 35
    assert confidence("a.jsonl", '{"loss": 5}\n') > 35
    assert confidence("a.jsonl", row(0, loss=1)) > confidence("a.log", row(0, loss=1) * 2) > 35
    assert confidence("config.json", '{"lr": 1}\n') == 0
    assert confidence("a.json", '{\n"lr": 1\n}\n') == 0
    assert 0 < confidence("a.jsonl", "{broken\n") < 35
    assert confidence("a.jsonl", "step,loss\n1,2\n") == 0


def test_real_file() -> None:
    signals, collector = read(FIXTURE)
    lengths = {name: len(s) for name, s in signals.items()}
    assert lengths.pop("eval/validation/CrossEntropyLoss") == 1
    assert set(lengths.values()) == {29}
    assert not collector.damage


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_as_powershell_redirects_it(tmp_path: Path, encoding: str) -> None:
    rows = "\ufeff" + "".join(f'{{"step": {i}, "loss": {3 - i / 64}}}\r\n' for i in range(100)) + '{"step": 100, "lo'
    path = tmp_path / "log.jsonl"
    path.write_bytes(rows.encode(encoding) + b"\x00")
    run = load(path)
    assert [s.values.tolist() for s in run.signals] == [[3 - i / 64 for i in range(100)]]
    assert "line 101" in run.damage[0].what
