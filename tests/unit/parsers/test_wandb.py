"""W&B files from sniffing to signals: damaged and foreign files first, then the real fixture."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wandb_records import BLOCK, HEADER, chunks, flip, history, integer, log, metric, run_record, stats, text

from forensics.parsers import wandb
from forensics.parsers.interface import NotMine, RunKey, Source
from forensics.parsers.sink import Collector

FIXTURES = Path(__file__).parents[3] / "fixtures" / "wandb"
FIXTURE = FIXTURES / "run-fixture1.wandb"
REAL = FIXTURE.read_bytes()


def read(path, run=None):
    source = Source.of(path)
    claim = wandb.sniff(source)
    collector = Collector()
    wandb.parse(source, collector.sink(str(path), wandb.NAME), run or claim.runs[0])
    return {s.name: s for s in collector.signals()}, collector


@pytest.fixture
def parse(tmp_path):
    def parse(data, name="run-abc.wandb"):
        path = tmp_path / name
        path.write_bytes(data)
        return read(path)

    return parse


def points(signals):
    return {name: list(zip(s.steps.tolist(), map(repr, s.values.tolist()), strict=True)) for name, s in signals.items()}


GOOD = points(read(FIXTURE)[0])
ROW_ENDS = [at + 7 + length for at, length, kind in chunks(REAL) if kind in {1, 4}]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (HEADER, "only the file header"),
        (HEADER[:3], "only the file header"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "Git-LFS"),
        (b"something else entirely, long enough to be looked at", "no readable record"),
    ],
)
def test_a_file_without_a_log_is_a_lost_run(parse, tmp_path, data, why):
    signals, collector = parse(data)
    assert signals == {}
    assert any(why in d.what for d in collector.damage)
    assert any("whole run" in d.lost for d in collector.damage)
    assert wandb.sniff(Source.of(tmp_path / "run-abc.wandb")).runs[0].id == "abc"


def test_foreign_files_are_declined(tmp_path):
    other = tmp_path / "x.log"
    other.write_bytes(b"loss 1")
    assert wandb.sniff(Source.of(other)) is None
    assert wandb.sniff(Source.of(tmp_path)) is None
    with pytest.raises(NotMine):
        wandb.parse(Source.of(other), Collector().sink("x", "wandb"), RunKey())


@pytest.mark.parametrize("row", [0, 30, 79])
def test_one_flipped_byte_costs_one_row_and_says_which(parse, row):
    at = REAL.index(b"data", 0)
    for _ in range(2 * row):  # every row is followed by a summary with the same keys
        at = REAL.index(b"batch", at + 1)
    signals, collector = parse(flip(REAL, at))
    lost = set(GOOD["_step"]) - set(points(signals)["_step"])
    assert len(lost) <= 1
    assert len(collector.damage) == 1
    assert "checksum mismatch" in collector.damage[0].what
    assert "at least 1 record" in collector.damage[0].lost


def test_lost_rows_are_counted_by_their_steps(parse):
    good = log([history({"loss": i / 2}, i) for i in range(100)])
    data = good
    for k in (50, 51, 52):
        data = flip(data, chunks(good)[k][0] + 20)
    signals, collector = parse(data)
    assert len(signals["loss"]) == 97
    assert collector.damage[0].what == "checksum mismatch after history row 50 (step 49)"
    assert collector.damage[0].lost.endswith("by the steps about 3 history rows between step 49 and 53")


def test_many_damaged_places_are_summed_up(parse):
    good = log([history({"loss": i / 2}, i) for i in range(200)])
    data = good
    for k in range(0, 200, 4):
        data = flip(data, chunks(good)[k][0] + 20)
    signals, collector = parse(data)
    assert len(signals["loss"]) == 150
    assert len(collector.damage) == 21
    assert "30 more damaged places" in collector.damage[-1].what


def test_a_torn_tail(parse):
    signals, collector = parse(REAL[:-400])
    assert collector.notes["finished"] is False
    assert "exit_code" not in collector.notes
    assert any("ends inside a record" in d.what for d in collector.damage)
    assert len(signals["train/loss"]) >= 79


def test_a_damaged_file_header_is_no_obstacle(parse):
    for at in (1, 6):
        signals, collector = parse(flip(REAL, at))
        assert points(signals) == GOOD
        assert [d.lost for d in collector.damage] == ["nothing: the records were read"]


def test_records_that_are_no_messages_are_counted(parse):
    signals, collector = parse(log([history({"a": 1}, 0), b"\x0f\x0f", history({"a": 2}, 1), text(2, b"\x0a\x7f"), history({"a": 3}, 2)]))
    assert signals["a"].values.tolist() == [1, 2, 3]
    assert sorted(d.lost for d in collector.damage) == ["1 record", "part of 1 row"]


@given(st.binary(max_size=4000))
@settings(max_examples=100, deadline=None)
def test_random_bytes_after_the_header(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "run-x.wandb"
    path.write_bytes(HEADER + junk)
    signals, collector = read(path)
    assert signals == {}
    assert collector.damage


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_damage_to_the_real_file(tmp_path_factory, data):
    damaged = bytearray(REAL)
    flips = data.draw(st.lists(st.tuples(st.integers(7, len(REAL) - 1), st.integers(1, 255)), max_size=5, unique_by=lambda flip: flip[0]))
    for at, mask in flips:
        damaged[at] ^= mask
    stop = data.draw(st.one_of(st.just(len(REAL)), st.integers(8, len(REAL))))
    path = tmp_path_factory.mktemp("damaged") / "run-x.wandb"
    path.write_bytes(bytes(damaged[:stop]))
    signals, collector = read(path)
    first = min([at for at, _ in flips] + [stop])
    before = tmp_path_factory.mktemp("before") / "run-x.wandb"
    before.write_bytes(REAL[: max([7, *(end for end in ROW_ENDS if end <= first)])])
    sure = read(before)[0]
    for name, signal in signals.items():
        assert len(signal) <= len(GOOD[name])
    for name, signal in sure.items():
        assert signals[name].values[: len(signal)].tobytes() == signal.values.astype(signals[name].values.dtype).tobytes()
    if flips and min(at for at, _ in flips) < stop - BLOCK:
        assert collector.damage


def test_nothing_personal_is_kept(parse):
    environment = text(26, text(5, "secrethost") + text(11, "me@example.org"))
    signals, collector = parse(log([run_record(), environment, history({"a": 1}, 0)]))
    assert "secret" not in repr((signals, collector.notes, collector.config, collector.damage))
    assert "example" not in repr((signals, collector.notes, collector.config, collector.damage))


def test_configuration_and_its_changes(parse):
    change = text(5, text(1, text(2, "opt") + text(2, "wd") + text(16, "0.2")) + text(2, text(1, "seed")))
    start = run_record(config={"opt": {"name": "adamw"}, "lr": 0.1, "seed": 3, "_wandb": {"t": 1}})
    _, collector = parse(log([start, change, text(5, text(1, text(1, "lr") + text(16, "0.2")))]))
    assert collector.config == {"opt.name": "adamw", "opt.wd": 0.2, "lr": 0.2}


def test_notes(parse):
    header = text(21, text(1, text(1, "0.19.11+abc")))
    _, collector = parse(log([header, run_record("r1", "night", f24=1), text(18, integer(1, -1))]))
    assert collector.notes == {
        "run_id": "r1", "run_name": "night", "project": "project", "start_time": 1_790_000_000.5, "resumed": True,
        "writer": "wandb 0.19.11", "finished": True, "exit_code": -1,
    }  # fmt: skip


def test_run_key_comes_from_the_record_and_from_the_name(tmp_path):
    path = tmp_path / "run-xyz.wandb"
    path.write_bytes(log([run_record("r1", "night")]))
    assert wandb.sniff(Source.of(path)).runs == (RunKey("r1", "night", 1_790_000_000.5),)
    path.write_bytes(log([history({"a": 1}, 0)]))
    assert wandb.sniff(Source.of(path)).runs == (RunKey("xyz"),)
    path.write_bytes(log([run_record("r1", "night", {"big": "x" * 200_000})]))
    assert wandb.sniff(Source.of(path)).runs[0].id == "r1"


def test_steps_without_a_step_field(parse):
    signals, _ = parse(log([history({"a": 1, "_step": 5}), history({"a": 2, "_step": 9}), history({"a": 3, "_step": 12}, 12)]))
    assert signals["a"].steps.tolist() == [5, 9, 12]
    signals, _ = parse(log([history({"a": i}) for i in range(3)]))
    assert signals["a"].steps.tolist() == [0, 1, 2]


def test_a_defined_step(parse):
    rows = [history({"train/loss": 1.0, "s": 10 * i, "other": 2.0, "_runtime": 0.1}, i) for i in range(3)]
    signals, collector = parse(log([metric("", "train/*", "s"), *rows]))
    assert signals["train/loss"].steps.tolist() == [0, 10, 20]
    assert signals["other"].steps.tolist() == [0, 1, 2]
    assert collector.notes["step_axis"] == "s"


def test_system_metrics_lie_at_the_last_row_before_them(parse):
    rows = [history({"loss": 1.0, "global_step": 10 * i}, i) for i in range(3)]
    signals, _ = parse(log([stats(100, cpu=1.5), *rows[:2], stats(115, cpu=2.5, n=3), rows[2]]))
    assert signals["system.cpu"].steps.tolist() == [0, 10]
    assert signals["system.cpu"].wall_times.tolist() == [100.0, 115.0]
    assert signals["system.n"].values.dtype == np.int64


def test_the_real_file():
    signals, collector = read(FIXTURE)
    expected = json.loads((FIXTURES / "expected.json").read_text())
    assert {n for n in signals if not n.startswith(("_", "system."))} == set(expected)
    for name, rows in expected.items():
        signal = signals[name]
        assert signal.records.tolist() == [row + 1 for row, _, _ in rows]
        assert signal.steps.tolist() == [step for _, step, _ in rows]
        np.testing.assert_array_equal(signal.values, np.array([float(v) if isinstance(v, str) else v for _, _, v in rows]))
    assert signals["data/batch/id"].values.dtype == np.int64
    assert signals["_step"].values.tolist() == list(range(80))
    assert np.array_equal(signals["train/loss"].wall_times, signals["_timestamp"].values)
    assert len(signals["system.proc.memory.rssMB"]) > 3
    assert collector.config == {"lr": 3e-4, "optim.name": "adamw", "optim.betas": [0.9, 0.95], "optim.wd": 0.1, "seed": 0, "added.late": True}
    assert collector.damage == []
    notes = {k: v for k, v in collector.notes.items() if k != "start_time"}
    assert notes == {
        "run_id": "fixture1", "run_name": "fixture run", "project": "fixture", "resumed": False, "writer": "wandb 0.31.0",
        "finished": True, "exit_code": 0, "step_axis": "train/global_step",
    }  # fmt: skip
