"""Blocks of lines out of hostile texts: holes, colours, progress bars, overlong lines, torn archives."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from console_reading import put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.parsers.console import lines
from forensics.parsers.interface import Source
from forensics.parsers.sink import Collector


def read(path: Path) -> tuple[list[lines.Block], list[str]]:
    collector = Collector()
    found = list(lines.blocks(Source.of(path), collector.sink(str(path), "x")))
    return found, [f"{d.what}: {d.lost}" for d in collector.damage]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc " * 9, b"\xff\xfe", b"\x1b[31m"]), max_size=60), size=st.integers(1, 40))
def test_blocks_of_any_size_hold_the_same_lines(tmp_path: Path, parts: list[bytes], size: int) -> None:
    text = b"".join(parts)
    path = put(tmp_path, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", size)
        found, damage = read(path)
    whole = text.replace(b"\x1b[31m", b"").replace(b"\r", b"\n")
    if not text.startswith(b"\xff\xfe"):  # the mark of UTF-16
        assert b"".join(b.data for b in found) == whole or b"\x1b" in b"".join(b.data for b in found)
        assert found[-1].first + len(found[-1].ends) - 1 == text.count(b"\n") if found else not text
    assert not damage


def test_an_overlong_line_is_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK", 1000)
    monkeypatch.setattr(lines, "LINE_LIMIT", 5000)
    found, damage = read(put(tmp_path, b"first\n" + b"x" * 20_000 + b"TAIL\nlast\n"))
    text = b"".join(b.data for b in found)
    assert text.startswith(b"first\nxxx")
    assert b"TAIL" not in text
    assert text.endswith(b"\nlast\n")
    assert len(text) < 6_000
    assert found[-1].numbers(found[-1].ends)[-1] == 3
    assert damage == ["1 lines are longer than 5000 bytes: what stands in them after that"]


def test_holes_left_by_a_crash(tmp_path: Path) -> None:
    found, damage = read(put(tmp_path, b"one\n" + b"\x00" * 512 + b"two\n"))
    assert found[0].data.endswith(b"\ntwo\n")
    assert len(found[0].ends) == 2
    assert damage[0].startswith("512 NUL bytes")


def test_a_torn_archive_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(b"line %d of a log\n" % i for i in range(20_000)))
    found, damage = read(put(tmp_path, packed[: len(packed) // 2], "train.log.gz"))
    assert len(damage) == 1
    assert "breaks off" in damage[0]
    assert sum(len(b.ends) for b in found) >= 0
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    assert read(put(tmp_path, bytes(broken), "train.log.gz"))[1]


def test_an_archive_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_UNPACKED", 1 << 20)
    monkeypatch.setattr(lines, "CHUNK", 1 << 18)
    found, damage = read(put(tmp_path, gzip.compress(b"a\n" * (1 << 22)), "train.log.gz"))
    assert sum(len(b.data) for b in found) <= 1 << 20
    assert "more than" in damage[0]


def test_progress_bars_count_as_one_line(tmp_path: Path) -> None:
    (block,), _ = read(put(tmp_path, b"a\rb\rc\nd\r\ne\n"))
    assert block.data == b"a\nb\nc\nd\n\ne\n"
    assert [block.line(block.data.index(x)) for x in (b"a", b"b", b"c", b"d", b"e")] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("tokens", "values", "kind"),
    [
        ([b"1", b"22"], [1, 22], "int64"),
        ([b"7", b"7", b"7"], [7, 7, 7], "int64"),
        ([b"1", b"2.5"], [1.0, 2.5], "float64"),
        ([b"1,234", b"12k"], [1234.0, 12000.0], "float64"),
        ([b"1.2e-3", b"-inf"], [0.0012, -math.inf], "float64"),
        ([b"9223372036854775808", b"1"], [9.223372036854775808e18, 1.0], "float64"),
        ([], [], "float64"),
    ],
)
def test_numbers(tokens: list[bytes], values: list[float], kind: str) -> None:
    got = lines.numbers(tokens)
    assert got.tolist() == values
    assert got.dtype == kind


def test_nan_in_every_spelling() -> None:
    assert all(math.isnan(v) for v in lines.numbers([b"nan", b"NaN", b"NAN", b"-nan"]).tolist())


@pytest.mark.parametrize("name", ["train.log", "out.txt", "slurm-12.out", "output", "job.o1234", "train.log.1", "x.err", "train.log.gz"])
def test_names_of_logs(name: str) -> None:
    assert lines.may_be_log(Path(name))
    assert lines.is_named_log(Path(name))


@pytest.mark.parametrize("name", ["README.txt", "requirements.txt", "LICENSE", "run.csv", "a.jsonl", "b.yaml", "notes.md", "run.wandb"])
def test_names_of_other_files(name: str) -> None:
    assert not lines.may_be_log(Path(name))
