from __future__ import annotations

import gzip
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard_events import (
    FIXTURES,
    curve_records,
    event,
    float32,
    message,
    read_bytes,
    read_file,
    record,
    rows,
    simple,
    tensor,
    varint,
    version,
)

from forensics.parsers import tensorboard
from forensics.parsers.interface import NotMine, RunKey, Source
from forensics.parsers.sink import Collector

NAME = "events.out.tfevents.1700000000.host"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


def claim(folder: Path, data: bytes, name: str = NAME) -> object:
    (folder / name).write_bytes(data)
    return tensorboard.sniff(Source.of(folder / name))


# Damaged


@pytest.mark.parametrize(
    "data",
    [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", b"\x1f\x8bbroken", b"\xff" * 400, b"x"],
    ids=["empty", "lfs", "gzip", "junk", "byte"],
)
def test_unreadable_event_file_is_claimed_and_said(tmp_path: Path, data: bytes) -> None:
    assert claim(tmp_path, data) is not None
    read = read_bytes(tmp_path, data)
    assert read.signals == {}
    assert len(read.damage) == 1
    assert read.damage[0].lost


def test_lfs_pointer_says_how_to_get_the_file(tmp_path: Path) -> None:
    read = read_bytes(tmp_path, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123456\n")
    assert "123,456 bytes" in read.said
    assert "git lfs pull" in read.said


def test_flipped_value_loses_one_record(tmp_path: Path) -> None:
    frames = curve_records(300)
    frames[100] = frames[100][:-6] + bytes([frames[100][-6] ^ 4]) + frames[100][-5:]
    read = read_bytes(tmp_path, b"".join(frames))
    assert rows(read.signals["train/loss"]) == [(s + 2, s, s / 4) for s in range(300) if s != 99]
    assert read.said == "1 record with a wrong checksum: 101: 1 record near step 98"


def test_damaged_length_loses_nothing(tmp_path: Path) -> None:
    frames = curve_records(300)
    frames[100] = b"\xee" + frames[100][1:]
    read = read_bytes(tmp_path, b"".join(frames))
    assert rows(read.signals["train/loss"]) == [(s + 2, s, s / 4) for s in range(300)]
    assert read.said == "1 record with a damaged length: 101: nothing: the content passed its own checksum"


def test_damaged_length_and_content(tmp_path: Path) -> None:
    frames = curve_records(300)
    frames[100] = bytes([*frames[100][:2], 7, *frames[100][3:20], 0xEE, *frames[100][21:]])
    read = read_bytes(tmp_path, b"".join(frames))
    assert len(read.signals["train/loss"]) == 299
    assert f"a damaged record length at byte {sum(map(len, frames[:100])):,} (record 101)" in read.said
    assert f"{len(frames[100])} bytes near step 98, at least 1 record" in read.said


@pytest.mark.parametrize("left", [3, 12, 30])
def test_cut_tail(tmp_path: Path, left: int) -> None:
    frames = curve_records(50)
    read = read_bytes(tmp_path, b"".join(frames) + frames[-1][:left])
    assert len(read.signals["train/loss"]) == 50
    assert "the file ends inside a record" in read.said
    assert f"{left} bytes near step 49" in read.said


def test_zeros_at_the_end(tmp_path: Path) -> None:
    read = read_bytes(tmp_path, b"".join(curve_records(50)) + bytes(4096))
    assert len(read.signals["train/loss"]) == 50
    assert "zeros where records should be" in read.said


def test_damaged_head(tmp_path: Path) -> None:
    frames = curve_records(50)
    data = b"\xff" * 30 + b"".join(frames[1:])
    found = claim(tmp_path, data)
    assert found.runs[0].order == 1.7e9
    read = read_bytes(tmp_path, data)
    assert len(read.signals["train/loss"]) == 50
    assert "(record 1)" in read.said


def test_many_damaged_places_are_counted(tmp_path: Path) -> None:
    frames = curve_records(400)
    for at in range(10, 400, 10):
        frames[at] = frames[at][:-5] + bytes([frames[at][-5] ^ 1]) + frames[at][-4:]
    for at in range(15, 400, 10):
        frames[at] = b"\x07" * 9
    read = read_bytes(tmp_path, b"".join(frames))
    assert len(read.signals["train/loss"]) == 400 - 39 - 39
    assert "39 records with a wrong checksum: 11, 21, 31, 41, 51, 61, 71, 81, ..." in read.said
    assert "31 more damaged places: 279 bytes" in read.said
    assert len(read.damage) == 10


def test_sound_record_without_an_event(tmp_path: Path) -> None:
    frames = curve_records(20)
    frames[10] = record(b"\x09\x00")
    read = read_bytes(tmp_path, b"".join(frames))
    assert len(read.signals["train/loss"]) == 19
    assert read.said == "1 record without a readable event: 11: 1 record near step 8"


def test_broken_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(curve_records(3000)))
    read = read_bytes(tmp_path, packed[:-100], NAME + ".gz")
    assert 100 < len(read.signals["train/loss"]) <= 3000
    assert "reading stopped" in read.said


def test_gzip_bomb_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "MAX_UNPACKED", 100_000)
    read = read_bytes(tmp_path, gzip.compress(b"".join(curve_records(20)) + bytes(10_000_000)), NAME + ".gz")
    assert "unpacks to more than" in read.said


BASE = b"".join(curve_records(40))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    claim(tmp_path, data)
    read = read_bytes(tmp_path, data)
    assert read.damage


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.binary(max_size=80), lead=st.sampled_from([b"", b"\x09AAAAAAAA", b"\x2a", event(3)]))
def test_any_payload_in_a_sound_record(tmp_path: Path, payload: bytes, lead: bytes) -> None:
    read = read_bytes(tmp_path, BASE + record(lead + payload) * 20)
    assert rows(read.signals["train/loss"])[:40] == [(s + 2, s, s / 4) for s in range(40)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), max_size=4),
    content=st.sampled_from(["values", "tensor", "hparams", "text"]),
)
def test_sealed_damage_inside_payloads(tmp_path: Path, flips: list[tuple[int, int]], content: str) -> None:
    """The checksum is right and the message is not: hostile rather than damaged."""
    payloads = {
        "values": event(7, simple("a", 1.0), simple("bb", 2.0)),
        "tensor": event(7, tensor("t", b"\x08\x09\x12\x04\x12\x02\x08\x01\x52\x01\x05", message(1, message(1, b"scalars")))),
        "hparams": event(7, tensor("_hparams_/session_start_info", b"\x08\x02", _hparams({"lr": b"\x11" + struct.pack("<d", 0.1)}))),
        "text": event(7, tensor("args/text_summary", b"\x08\x07\x42\x09" + b'{"a": 12}')),
    }
    damaged = bytearray(payloads[content])
    for at, bits in flips:
        damaged[at % len(damaged)] ^= bits
    read = read_bytes(tmp_path, BASE + record(bytes(damaged)) * 10)
    assert rows(read.signals["train/loss"])[:40] == [(s + 2, s, s / 4) for s in range(40)]


# Near misses


@pytest.mark.parametrize("name", ["data.tfrecord", "model.bin"])
def test_other_records_are_not_claimed(tmp_path: Path, name: str) -> None:
    data = record(b"\x0a\x05hello") * 3  # tf.train.Example has the same framing
    assert claim(tmp_path, data, name) is None
    with pytest.raises(NotMine):
        read_bytes(tmp_path, data, name)


def test_plain_gzip_is_not_claimed(tmp_path: Path) -> None:
    assert claim(tmp_path, gzip.compress(b"hello"), "a.gz") is None


def test_folder_is_not_claimed(tmp_path: Path) -> None:
    assert tensorboard.sniff(Source.of(tmp_path)) is None


def test_version_record_alone_is_whole(tmp_path: Path) -> None:
    read = read_bytes(tmp_path, record(version()))
    assert read.signals == {}
    assert read.damage == []


def test_histograms_are_counted_and_no_damage() -> None:
    read = read_file(*(FIXTURES / "torch").glob("events*"))
    assert read.notes["tensorboard_skipped"] == {"histogram": 12, "text": 1}
    assert read.damage == []


def test_tensors_that_are_no_scalars_are_counted_by_plugin(tmp_path: Path) -> None:
    meta = message(1, message(1, b"pr_curves"))
    vector = b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x08" + bytes(8)
    frames = [record(version())]
    frames += [record(event(s, tensor("pr", vector, meta if s == 0 else b""))) for s in range(20)]
    frames += [record(event(s, message(1, message(1, b"img") + message(4, bytes(30))))) for s in range(20)]
    read = read_bytes(tmp_path, b"".join(frames))
    assert read.signals == {}
    assert read.damage == []
    assert read.notes["tensorboard_skipped"] == {"image": 20, "pr_curves": 20}


# Whole


def test_sniff_knows_the_start_of_the_file() -> None:
    path = next((FIXTURES / "torch").glob("events*"))
    found = tensorboard.sniff(Source.of(path))
    assert found is not None
    assert found.confidence == 100
    assert found.runs == (RunKey(order=found.runs[0].order),)
    assert found.runs[0].order > 1.7e9


def test_event_file_under_another_name_is_claimed(tmp_path: Path) -> None:
    assert claim(tmp_path, BASE, "log.bin") is not None
    assert len(read_bytes(tmp_path, BASE, "log.bin").signals["train/loss"]) == 40


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_real_writers(name: str) -> None:
    read = read_file(FIXTURES / name)
    assert read.damage == []
    assert set(read.signals) == set(EXPECTED[name])
    for tag, wanted in EXPECTED[name].items():
        signal = read.signals[tag]
        assert signal.steps.tolist() == [step for step, _ in wanted]
        np.testing.assert_array_equal(signal.values, [float(v) if isinstance(v, str) else v for _, v in wanted])
        assert signal.wall_times is not None
        assert (np.diff(signal.wall_times) >= 0).all()


def test_negative_zero_and_huge_steps_survive() -> None:
    odd = read_file(*(FIXTURES / "torch").glob("events*")).signals["odd"]
    assert odd.steps.tolist() == [-5, 2**40, 2**62]
    assert math.copysign(1, odd.values[1]) == -1


def test_integers_stay_integers() -> None:
    read = read_file(*(FIXTURES / "tensor_content").glob("events*"))
    for encoding in ("content", "val"):
        assert read.signals[f"int64/{encoding}"].values.dtype == np.int64
        assert read.signals[f"int64/{encoding}"].values[0] == 2**53 + 1
        assert read.signals[f"int32/{encoding}"].values.min() < 0
        assert read.signals[f"double/{encoding}"].values.dtype == np.float64


def test_hyperparameters_become_configuration() -> None:
    read = read_file(*(FIXTURES / "hparams").glob("events*"))
    assert read.config == {"lr": 0.01, "layers": 4.0, "optimizer": "adamw", "amp": 1.0}
    assert "tensorboard_skipped" not in read.notes


def _hparams(entries: dict[str, bytes]) -> bytes:
    start = b"".join(message(1, message(1, key.encode()) + message(2, value)) for key, value in entries.items())
    return message(1, message(1, b"hparams") + message(2, message(3, start)))


def test_nested_hyperparameters(tmp_path: Path) -> None:
    number = b"\x11" + struct.pack("<d", 2.5)
    deep = number
    for _ in range(40):
        deep = message(6, message(1, deep))
    values = {
        "none": b"\x08\x00",
        "off": b"\x20\x00",
        "list": message(6, message(1, number) + message(1, message(3, b"x"))),
        "map": message(5, message(1, message(1, b"k") + message(2, number))),
        "deep": deep,
    }
    read = read_bytes(tmp_path, record(event(0, tensor("_hparams_/session_start_info", b"", _hparams(values)))))
    assert read.damage == []
    assert {k: v for k, v in read.config.items() if k != "deep"} == {"none": None, "off": False, "list": [2.5, "x"], "map.k": 2.5}


def test_json_text_becomes_configuration() -> None:
    read = read_file(*(FIXTURES / "torch").glob("events*"))
    assert read.config["learning_rate"] == 0.001
    assert read.config["model.layers"] == 2


@pytest.mark.parametrize("text", [b"[1]", b"{broken}", b'{"a": "\\ud800"}', b'{"a": ' * 5000 + b"}" * 5000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_hostile_text_is_only_counted(tmp_path: Path, text: bytes) -> None:
    read = read_bytes(tmp_path, record(event(0, tensor("a/text_summary", b"\x08\x07" + message(8, text)))))
    assert read.config == {}
    assert read.notes["tensorboard_skipped"] == {"text": 1}


def test_restart_keeps_both_copies_and_notes_the_purge() -> None:
    read = read_file(*sorted((FIXTURES / "restart").glob("events*")))
    loss = read.signals["train/loss"]
    assert loss.steps.tolist() == [*range(100), *range(60, 120)]
    assert read.notes["purge_step"] == 60
    assert read.notes["writer_restarts"] == [60]
    assert [s.source for s in loss.spans] == [0, 1]


def test_steps_going_back_stay_in_the_order_written(tmp_path: Path) -> None:
    steps = [*range(50), *range(20, 60), 7]
    frames = [record(version())] + [record(event(s, simple("loss", float(i)))) for i, s in enumerate(steps)]
    read = read_bytes(tmp_path, b"".join(frames))
    assert rows(read.signals["loss"]) == [(i + 2, s, float(i)) for i, s in enumerate(steps)]


def test_several_values_in_one_event(tmp_path: Path) -> None:
    frames = [record(version())]
    frames += [record(event(s, simple("loss", s), simple("lr", 0.5), simple("loss", s + 0.5))) for s in range(300)]
    read = read_bytes(tmp_path, b"".join(frames))
    assert read.signals["loss"].steps.tolist() == [s for s in range(300) for _ in (0, 1)]
    assert read.signals["loss"].values.tolist() == [s + half for s in range(300) for half in (0, 0.5)]
    assert read.signals["lr"].values.tolist() == [0.5] * 300


def test_unusual_but_valid_messages(tmp_path: Path) -> None:
    wall = b"\x09" + struct.pack("<d", 5.0)
    inner = message(1, message(1, b"loss") + b"\x15" + struct.pack("<f", 3.0))
    payloads = [
        message(5, inner) + b"\x10\x07" + wall,  # another order of fields
        message(5, inner) + b"\x10\x07",  # no wall time
        wall + b"\x10\x87\x00" + message(5, inner),  # a step in two bytes where one would do
        wall + b"\x10\x01\x10\x07" + message(5, inner),  # a field twice: the last one counts
        wall + b"\x10\x07" + message(5, b"\xf2\x7f\x01x" + inner),  # an unknown field
        wall + b"\x10\x07" + message(5, inner[:2]),  # cut inside
    ]
    for payload in payloads[:5]:
        for count in (1, 40):
            read = read_bytes(tmp_path, record(version()) + record(payload) * count)
            assert read.damage == []
            assert read.signals["loss"].steps.tolist() == [7] * count
            assert read.signals["loss"].values.tolist() == [3.0] * count
    assert "without a readable event" in read_bytes(tmp_path, record(payloads[5])).said


def test_tag_that_changes_from_integer_to_float(tmp_path: Path) -> None:
    whole = [record(event(s, tensor("n", b"\x08\x09\x52\x01" + varint(s + 1)))) for s in range(20)]
    parts = [record(event(s, simple("n", s + 0.5))) for s in range(20)]
    mixed = [frame for pair in zip(whole, parts, strict=True) for frame in pair]
    read = read_bytes(tmp_path, b"".join(mixed))
    assert read.signals["n"].values.tolist() == [v for s in range(20) for v in (s + 1.0, s + 0.5)]


def test_many_tags(tmp_path: Path) -> None:
    tags = [f"grad_norm/model.layers.{i}.w" for i in range(500)] + ["a", "b", "0123456", "01234567", "012345678"]
    frames = [record(version())]
    frames += [record(event(s, simple(tag, i + s / 8))) for s in range(12) for i, tag in enumerate(tags)]
    read = read_bytes(tmp_path, b"".join(frames))
    assert list(read.signals) != []
    assert set(read.signals) == set(tags)
    for i, tag in enumerate(tags):
        assert rows(read.signals[tag]) == [(2 + s * len(tags) + i, s, i + s / 8) for s in range(12)]


def test_tags_that_are_not_utf8(tmp_path: Path) -> None:
    value = message(1, message(1, b"lo\xffss") + b"\x15" + struct.pack("<f", 1.0))
    read = read_bytes(tmp_path, record(version()) + record(event(1, value)) * 20)
    assert list(read.signals) == ["lo\\xffss"]


def test_nan_payloads_and_signalling_nans(tmp_path: Path) -> None:
    bits = [0x7F800001, 0x7FC00000, 0xFFC12345, 0x7F800000]
    frames = [record(event(s, message(1, message(1, b"x") + b"\x15" + struct.pack("<I", bits[s % 4])))) for s in range(40)]
    values = read_bytes(tmp_path, b"".join(frames)).signals["x"].values
    assert np.isnan(values).sum() == 30
    assert np.isposinf(values).sum() == 10


def test_values_are_float32_widened(tmp_path: Path) -> None:
    values = [0.1, 1e-45, 3.4e38, -7.7]
    frames = [record(event(s, simple("x", v))) for s, v in enumerate(values)]
    assert read_bytes(tmp_path, b"".join(frames)).signals["x"].values.tolist() == float32(values)


def test_gzipped_file(tmp_path: Path) -> None:
    packed = gzip.compress(BASE)
    found = claim(tmp_path, packed, NAME + ".gz")
    assert found.confidence == 100
    assert found.runs[0].order == 1.7e9
    assert len(read_bytes(tmp_path, packed, NAME + ".gz").signals["train/loss"]) == 40


def test_gzipped_file_that_packs_well_and_has_two_members(tmp_path: Path) -> None:
    one = record(event(3, simple("loss", 1.0)))
    read = read_bytes(tmp_path, gzip.compress(one * 400_000) + gzip.compress(one * 10), NAME + ".gz")
    assert len(read.signals["loss"]) == 400_010
    assert read.damage == []


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(BASE)
    told: list[int] = []
    collector = Collector(progress=told.append)
    tensorboard.parse(Source.of(tmp_path / NAME), collector.sink(NAME, tensorboard.NAME), RunKey())
    assert sum(told) == len(BASE)
