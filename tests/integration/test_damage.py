"""Damaged logs of every format through the command line: what can be read is read, and nothing damaged is called healthy."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from forensics.cli.main import main
from tests.fuzz.samples import samples

FIXTURES = Path(__file__).parents[2] / "fixtures"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"

EVENTS = "events.out.tfevents.1796095173.host.1.0"


@dataclass(frozen=True, slots=True)
class Log:
    """A whole log, copied. ``file`` is the one that is damaged, ``header`` the bytes of it that hold no point yet."""

    format: str
    folder: Path
    file: Path
    header: int
    binary: bool


@pytest.fixture(params=["tensorboard", "wandb", "hf_trainer", "csv", "jsonl", "mlflow_files", "mlflow_sqlite", "console"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    return make(str(request.param), tmp_path)


def make(kind: str, tmp_path: Path) -> Log:
    home = tmp_path / "run"
    home.mkdir()

    def copied(source: str, name: str, header: int, binary: bool) -> Log:
        shutil.copy(FIXTURES / source, home / name)
        return Log(kind, home, home / name, header, binary)

    if kind == "tensorboard":
        return copied(f"labelled/nan_batch/{EVENTS}", EVENTS, 40, True)
    if kind == "wandb":
        return copied("wandb/run-fixture1.wandb", "run-fixture1.wandb", 7, True)
    if kind == "hf_trainer":
        return copied("labelled/bad_batch/trainer_state.json", "trainer_state.json", 2, False)
    if kind == "csv":
        return copied("labelled/lr_spike/metrics.csv", "metrics.csv", 0, False)
    if kind == "jsonl":
        return copied("labelled/clean/metrics.jsonl", "metrics.jsonl", 0, False)
    if kind == "console":
        return copied("console/bloom.log", "bloom.log", 0, False)
    if kind == "mlflow_files":
        run = next(FIXTURES.glob("mlflow/mlruns/*/*/metrics")).parent
        shutil.copytree(run, home / run.name)
        return Log(kind, home, home / run.name / "metrics/loss", 0, False)
    database = next(s for s in samples(tmp_path / "made") if s.format == "mlflow_sqlite")
    shutil.copy(database.folder / database.file, home / "mlflow.db")
    return Log(kind, home, home / "mlflow.db", 100, True)


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    points: int
    verdict: str
    damage: list[dict[str, str]]
    error: str


Analyze = Callable[[Path], Outcome]


@pytest.fixture
def analyze(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Analyze:
    def run(path: Path) -> Outcome:
        out = tmp_path / "case.json"
        out.unlink(missing_ok=True)
        code = main(["analyze", str(path), "--json", str(out), "--quiet"])
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert "bug in forensics" not in said
        if not out.exists():
            return Outcome(code, 0, "", [], said)
        case = json.loads(out.read_text())
        assert not any("parser failed" in d["what"] for d in case["damage"])
        points = sum(signal["points"] for signal in case["signals"])
        return Outcome(code, points, case["verdict"], case["damage"], said)

    return run


def is_said(outcome: Outcome) -> None:
    """Exit 3 with the damage named, and no verdict that passes over it; exit 2 with the reason where nothing is readable."""
    if outcome.code == 2:
        assert outcome.error.strip()
        return
    assert outcome.code == 3, outcome
    assert all(d["what"] and d["lost"] for d in outcome.damage)
    quiet = outcome.verdict.startswith("Nothing unusual")
    assert not quiet or "damaged" in outcome.verdict or "could not be read" in outcome.verdict, outcome.verdict


def test_whole_logs_are_whole(log: Log, analyze: Analyze) -> None:
    outcome = analyze(log.folder)
    assert outcome.damage == []
    assert outcome.code == 0


def test_torn_tail(log: Log, analyze: Analyze) -> None:
    whole = analyze(log.folder).points
    data = log.file.read_bytes()
    log.file.write_bytes(data[: len(data) * 3 // 5 + 3])
    outcome = analyze(log.folder)
    assert 0 < outcome.points < whole
    if log.format not in {"csv", "console"}:  # the last line of a text is cut at any character, in any run that still writes
        assert outcome.code == 3
    if outcome.code == 3:
        is_said(outcome)


def test_csv_that_ends_inside_a_line(tmp_path: Path, analyze: Analyze) -> None:
    log = make("csv", tmp_path)
    data = log.file.read_bytes()
    log.file.write_bytes(data[: data.rindex(b",", 0, len(data) * 3 // 5)])
    outcome = analyze(log.folder)
    assert outcome.points > 0
    is_said(outcome)


def test_empty_file(log: Log, analyze: Analyze) -> None:
    log.file.write_bytes(b"")
    outcome = analyze(log.folder)
    if log.format == "mlflow_files":
        assert outcome.points > 0  # the other metrics
    else:
        assert outcome.code == 2
        assert outcome.error.strip()


def test_header_only(log: Log, analyze: Analyze) -> None:
    if not log.header:
        pytest.skip("the format has no header of its own")
    log.file.write_bytes(log.file.read_bytes()[: log.header])
    outcome = analyze(log.folder)
    assert outcome.code in {2, 3}
    assert outcome.points == 0
    is_said(outcome)


def test_lfs_pointer(log: Log, analyze: Analyze) -> None:
    log.file.write_bytes(LFS)
    outcome = analyze(log.folder)
    is_said(outcome)
    if log.format not in {"mlflow_files", "console"}:
        assert outcome.code == 2
        assert "LFS" in outcome.error


def test_gzipped(log: Log, analyze: Analyze) -> None:
    whole = analyze(log.folder).points
    packed = log.file.with_name(log.file.name + ".gz")
    packed.write_bytes(gzip.compress(log.file.read_bytes()))
    log.file.unlink()
    outcome = analyze(log.folder)
    if outcome.code == 0:
        assert outcome.points == whole
    else:
        is_said(outcome)


def test_gzip_that_is_cut(log: Log, analyze: Analyze) -> None:
    packed = gzip.compress(log.file.read_bytes())
    log.file.with_name(log.file.name + ".gz").write_bytes(packed[: len(packed) // 2])
    log.file.unlink()
    is_said(analyze(log.folder))


def test_still_being_written(log: Log, analyze: Analyze) -> None:
    """Read at many lengths, as a growing file shows itself: points only ever come, and no length fails."""
    data = log.file.read_bytes()
    last = 0
    for share in range(5, 10):
        log.file.write_bytes(data[: len(data) * share // 10])
        outcome = analyze(log.folder)
        assert outcome.code in {0, 2, 3}
        assert outcome.points >= last
        last = outcome.points if log.format != "mlflow_sqlite" else 0  # a database is not written from front to back


def test_zeros_in_the_middle(log: Log, analyze: Analyze) -> None:
    data = bytearray(log.file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 700] = bytes(700)
    log.file.write_bytes(bytes(data))
    outcome = analyze(log.folder)
    assert outcome.points > 0
    is_said(outcome)


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_one_flipped_byte_loses_one_record(kind: str, tmp_path: Path, analyze: Analyze) -> None:
    log = make(kind, tmp_path)
    whole = analyze(log.folder).points
    data = bytearray(log.file.read_bytes())
    data[len(data) // 2] ^= 0x10
    log.file.write_bytes(bytes(data))
    outcome = analyze(log.folder)
    assert whole - 20 <= outcome.points <= whole  # of a record whose length was hit, the content can still be whole
    is_said(outcome)


@pytest.mark.parametrize("kind", ["hf_trainer", "jsonl"])
def test_broken_json_after_good_entries(kind: str, tmp_path: Path, analyze: Analyze) -> None:
    log = make(kind, tmp_path)
    data = log.file.read_bytes()
    at = data.index(b'"step"', len(data) * 4 // 5)
    log.file.write_bytes(data[:at] + b"\x00\xff<<<<<<< HEAD" + data[at + 40 :])
    outcome = analyze(log.folder)
    assert outcome.points > 0
    is_said(outcome)
    assert any("entries were read" in d["lost"] or "row" in d["lost"] for d in outcome.damage)


def test_cell_of_a_megabyte(tmp_path: Path, analyze: Analyze) -> None:
    log = make("csv", tmp_path)
    whole = analyze(log.folder).points
    lines = log.file.read_text().splitlines()
    cells = lines[40].split(",")
    cells[-1] = "x" * (1 << 20)
    lines[40] = ",".join(cells)
    log.file.write_text("\n".join(lines) + "\n")
    outcome = analyze(log.folder)
    assert whole - 1 <= outcome.points < whole
    is_said(outcome)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "hf_trainer"])
def test_mixed_encodings(kind: str, tmp_path: Path, analyze: Analyze) -> None:
    log = make(kind, tmp_path)
    whole = analyze(log.folder).points
    lines = log.file.read_bytes().split(b"\n")
    middle = len(lines) // 2
    lines[middle] = lines[middle][:3] + "\u00e4\u20ac".encode("utf-16-le") + b"\xe4\xff" + lines[middle][3:]
    log.file.write_bytes(b"\n".join(lines))
    outcome = analyze(log.folder)
    assert whole // 3 < outcome.points <= whole
    is_said(outcome)


@pytest.mark.parametrize("kind", ["jsonl", "hf_trainer"])
def test_json_nested_ten_thousand_deep(kind: str, tmp_path: Path, analyze: Analyze) -> None:
    log = make(kind, tmp_path)
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    data = log.file.read_bytes()
    if kind == "jsonl":
        log.file.write_bytes(data + b'{"step": 1000000, "deep": ' + deep + b"}\n")
    else:
        at = data.rindex(b"{", 0, len(data) * 4 // 5)
        log.file.write_bytes(data[:at] + deep + b", " + data[at:])
    outcome = analyze(log.folder)
    assert outcome.points > 0
    is_said(outcome)


def test_links_in_a_circle(log: Log, analyze: Analyze) -> None:
    whole = analyze(log.folder)
    (log.folder / "again").symlink_to(log.folder, target_is_directory=True)
    (log.folder / "itself").symlink_to("itself")
    (log.folder / "nowhere").symlink_to("not/there")
    outcome = analyze(log.folder)
    assert outcome.points == whole.points
    assert outcome.code in {0, 3}
    if outcome.code == 3:
        is_said(outcome)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read(log: Log, analyze: Analyze) -> None:
    log.file.chmod(0)
    try:
        is_said(analyze(log.folder))
    finally:
        log.file.chmod(0o600)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folder_that_may_not_be_listed(log: Log, analyze: Analyze) -> None:
    hidden = log.folder / "hidden"
    hidden.mkdir()
    hidden.chmod(0)
    try:
        outcome = analyze(log.folder)
        assert outcome.points > 0
        is_said(outcome)
    finally:
        hidden.chmod(0o700)


def test_loss_that_was_lost_is_not_called_missing_alone(tmp_path: Path, analyze: Analyze) -> None:
    """The metric file of the loss is gone to zeros: the verdict may not say "nothing unusual" without the damage."""
    log = make("mlflow_files", tmp_path)
    log.file.write_bytes(bytes(2000))
    is_said(analyze(log.folder))
