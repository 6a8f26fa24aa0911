"""Discovery: hostile trees first, then what must not be mixed up, then the usual layouts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from forensics.parsers import builtin
from forensics.parsers.builtin import Parsers
from forensics.parsers.discovery import DiscoveredRun, discover
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

CSV = "step,loss\n0,1\n1,2\n"


class LetterParser(ModuleType):
    """Stands for a binary format: claims files that begin with its letter; the rest of the first line is ``id order``."""

    def __init__(self, name: str, letter: str) -> None:
        super().__init__(name)
        self.NAME = name
        self.letter = letter.encode()

    def sniff(self, source: Source) -> Claim | None:
        if source.is_dir or not source.head.startswith(self.letter + b" "):
            return None
        _, identity, order = source.head.split(b"\n")[0].decode().split(" ")
        return Claim(self.NAME, 90, (RunKey(identity.strip("-"), "", float(order)),))

    def parse(self, source: Source, sink: Sink, run: RunKey) -> None:
        """Nothing to read."""


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """W&B and TensorBoard by stand-ins, so that grouping is tested and not their readers."""
    real = [p for p in builtin.parsers().loaded if p.NAME not in {"wandb", "tensorboard"}]
    loaded = Parsers((LetterParser("wandb", "W"), LetterParser("tensorboard", "T"), *real), ())
    monkeypatch.setattr(builtin, "parsers", lambda: loaded)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


Write = Callable[[str, str], Path]


def shape(runs: tuple[DiscoveredRun, ...], root: Path) -> list[list[str]]:
    """Every run as the relative paths of its sources, with their prefixes."""
    return [[f"{s.prefix}<{s.path.relative_to(root).as_posix()}" if s.prefix else s.path.relative_to(root).as_posix() for s in r.sources] for r in runs]


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        discover(tmp_path / "nothing")


def test_symlink_loops_and_links_out(tmp_path: Path, write: Write) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "metrics.csv").write_text(CSV)
    write("root/a/metrics.csv", CSV)
    root = tmp_path / "root"
    (root / "a/loop").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    (root / "out").symlink_to(outside)
    (root / "out.csv").symlink_to(outside / "metrics.csv")
    (root / "again.csv").symlink_to(root / "a/metrics.csv")
    found = discover(root)
    assert len(found.runs) == 1
    assert len(found.runs[0].sources) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_paths_are_damage(tmp_path: Path, write: Write) -> None:
    write("a/metrics.csv", CSV)
    write("b/metrics.csv", CSV).chmod(0)
    (tmp_path / "c").mkdir(mode=0)
    found = discover(tmp_path)
    assert len(found.runs) == 1
    assert {Path(d.path).name for d in found.damage} == {"metrics.csv", "c"}
    assert found.runs[0].damage == found.damage


def test_unreadable_file_by_mocked_permission(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a/metrics.csv", CSV)
    closed = write("b/metrics.csv", CSV)
    real = Source.of

    def of(path: Path) -> Source:
        if path == closed:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Source, "of", of)
    found = discover(tmp_path)
    assert [d.what for d in found.damage] == ["cannot be opened (Permission denied)"]


def test_device_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.csv")
    found = discover(tmp_path / "metrics.csv")
    assert not found.runs
    assert found.damage
    assert not discover(tmp_path).runs


def test_depth_and_number_are_bounded(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("/".join(["d"] * 20) + "/metrics.csv", CSV)
    found = discover(tmp_path)
    assert not found.runs
    assert "deep" in found.damage[0].what
    monkeypatch.setattr("forensics.parsers.discovery.MAX_ENTRIES", 5)
    for i in range(10):
        write(f"many/{i}.txt", "x")
    assert any("more than 5" in d.what for d in discover(tmp_path).damage)


@pytest.mark.parametrize("text", ["", "version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 5\n"])
@pytest.mark.parametrize("name", ["metrics.csv", "run-x.wandb", "events.out.tfevents.1.a", "trainer_state.json", "mlflow.db"])
def test_empty_files_and_lfs_pointers_are_damage(tmp_path: Path, write: Write, name: str, text: str) -> None:
    write(name, text)
    found = discover(tmp_path)
    assert not found.runs
    assert len(found.damage) == 1


def test_packed_logs_that_are_none_are_damage(tmp_path: Path, write: Write) -> None:
    write("metrics.csv.gz", "x")
    write("notes.gz", "x")
    found = discover(tmp_path)
    assert [Path(d.path).name for d in found.damage] == ["metrics.csv.gz"]
    assert found.unclaimed == 1


def test_a_parser_that_raises_is_damage(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = LetterParser("broken", "x")
    monkeypatch.setattr(broken, "sniff", lambda _source: 1 / 0)
    loaded = Parsers((broken, *builtin.parsers().loaded), ("plugin odd could not be loaded",))
    monkeypatch.setattr(builtin, "parsers", lambda: loaded)
    write("metrics.csv", CSV)
    found = discover(tmp_path)
    assert len(found.runs) == 1
    assert any("broken parser failed" in d.what for d in found.damage)
    assert any("plugin odd" in d.what for d in found.damage)


def test_unclaimed_files_are_counted(tmp_path: Path, write: Write) -> None:
    write("notes.txt", "hello")
    write("image.png", "x")
    write("wandb/latest-run", "offline-run-20261201_000000-abc")
    found = discover(tmp_path)
    assert (found.runs, found.unclaimed) == ((), 1)


def test_skipped_folders(tmp_path: Path, write: Write) -> None:
    for folder in (".git", "node_modules", "__pycache__"):
        write(f"{folder}/metrics.csv", CSV)
    assert not discover(tmp_path).runs


def test_weak_claims_count_only_alone(tmp_path: Path, write: Write) -> None:
    write("data/labels.csv", "width,height\n1,2\n3,4\n")
    assert len(discover(tmp_path).runs) == 1
    write("metrics.csv", CSV)
    found = discover(tmp_path)
    assert shape(found.runs, tmp_path) == [["metrics.csv"]]
    assert found.unclaimed == 1


def test_a_single_file_takes_only_configuration_with_it(tmp_path: Path, write: Write) -> None:
    path = write("metrics.csv", CSV)
    write("other.jsonl", '{"step": 1, "loss": 2}\n')
    write("hparams.yaml", "lr: 1\n")
    (run,) = discover(path).runs
    assert (run.path, shape((run,), tmp_path)) == (path, [["metrics.csv"]])
    assert [a.path.name for a in run.adjuncts] == ["hparams.yaml"]


def test_wandb_attempts_and_copies(formats: None, tmp_path: Path, write: Write) -> None:
    write("wandb/run-2-abc/run-abc.wandb", "W abc 200\nsecond")
    write("wandb/run-1-abc/run-abc.wandb", "W abc 100\nfirst and longer")
    write("wandb/latest-run/run-abc.wandb", "W abc 200\nsec")
    write("wandb/run-1-abc/files/config.yaml", "lr:\n  value: 1\n")
    (run,) = discover(tmp_path).runs
    assert shape((run,), tmp_path) == [["wandb/run-1-abc/run-abc.wandb", "wandb/run-2-abc/run-abc.wandb"]]
    assert [a.path.name for a in run.adjuncts] == ["config.yaml"]
    assert "older copy" in str(dict(run.notes)["copies_dropped"])


def test_wandb_runs_of_different_ids(formats: None, tmp_path: Path, write: Write) -> None:
    write("wandb/run-1-abc/run-abc.wandb", "W abc 100\n")
    write("wandb/run-2-def/run-def.wandb", "W def 200\n")
    assert [r.name for r in discover(tmp_path).runs] == ["abc", "def"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["b:200", "a:300"], [["b", "a"]]),
        (["r1/e:1", "r2/e:2"], [["r1/e"], ["r2/e"]]),
        (["e:1", "loss_a/e:2", "hp/1/e:3"], [["e", "hp/1/<hp/1/e", "loss_a/<loss_a/e"]]),
        (["train/e:1", "validation/e:2"], [["train/<train/e", "validation/<validation/e"]]),
        (["x/train/e:1", "x/val/e:2", "y/train/e:3", "y/val/e:4"], [["train/<x/train/e", "val/<x/val/e"], ["train/<y/train/e", "val/<y/val/e"]]),
        (["only/train/e:1"], [["only/train/e"]]),
        (["train/e:1", "val/e:2", "train/loss_a/e:3"], [["train/<train/e", "train/loss_a/<train/loss_a/e", "val/<val/e"]]),
    ],
)
def test_event_folders(formats: None, tmp_path: Path, write: Write, files: list[str], expected: list[list[str]]) -> None:
    for name in files:
        path, order = name.split(":")
        write(path, f"T - {order}\n")
    assert shape(discover(tmp_path).runs, tmp_path) == expected


def state(step: int) -> str:
    return json.dumps({"global_step": step, "log_history": [{"step": i, "loss": i} for i in range(step)]})


def test_checkpoints_of_one_trainer(tmp_path: Path, write: Write) -> None:
    write("out/checkpoint-50/trainer_state.json", state(50))
    write("out/checkpoint-100/trainer_state.json", state(100))
    write("out/trainer_state.json", state(120))
    (run,) = discover(tmp_path).runs
    assert shape((run,), tmp_path) == [["out/trainer_state.json"]]
    assert [o.path.parent.name for o in run.older] == ["checkpoint-100", "checkpoint-50"]
    assert run.name == "out"


def test_two_trainers(tmp_path: Path, write: Write) -> None:
    write("a/checkpoint-50/trainer_state.json", state(50))
    write("b/checkpoint-50/trainer_state.json", state(50))
    assert [r.name for r in discover(tmp_path).runs] == ["a", "b"]


def test_formats_with_one_run_each_are_one_run(formats: None, tmp_path: Path, write: Write) -> None:
    write("wandb/run-1-abc/run-abc.wandb", "W abc 100\n")
    write("runs/Dec01/e", "T - 1\n")
    write("trainer_state.json", state(10))
    (run,) = discover(tmp_path).runs
    assert [s.parser for s in run.sources] == ["wandb", "hf_trainer", "tensorboard"]


def test_several_runs_are_paired_by_folder(formats: None, tmp_path: Path, write: Write) -> None:
    for version in ("version_2", "version_10"):
        write(f"logs/{version}/metrics.csv", CSV)
        write(f"logs/{version}/e", "T - 1\n")
        write(f"logs/{version}/hparams.yaml", "lr: 1\n")
    write("config.json", "{}")
    runs = discover(tmp_path).runs
    assert [r.name for r in runs] == ["version_2", "version_10"]
    assert [[s.parser for s in r.sources] for r in runs] == [["csv", "tensorboard"]] * 2
    assert [[a.path.name for a in r.adjuncts] for r in runs] == [["hparams.yaml", "config.json"]] * 2


def test_tables_of_one_folder(tmp_path: Path, write: Write) -> None:
    write("a/loss.csv", "step,loss\n0,1\n")
    write("a/lr.csv", "step,lr\n0,1\n")
    write("b/train_log.csv", "step,loss,lr\n0,1,1\n")
    write("b/val_log.csv", "step,loss\n0,1\n")
    write("c/seed1.csv", CSV)
    write("c/seed2.csv", CSV)
    write("d/metrics.csv", "step,loss,lr\n0,1,1\n")
    write("d/more.csv", "step,loss,aux\n0,1,1\n")
    assert shape(discover(tmp_path).runs, tmp_path) == [
        ["a/loss.csv", "a/lr.csv"],
        ["train/<b/train_log.csv", "val/<b/val_log.csv"],
        ["c/seed1.csv"],
        ["c/seed2.csv"],
        ["metrics/<d/metrics.csv", "more/<d/more.csv"],
    ]


def test_configuration_goes_to_the_nearest_run(tmp_path: Path, write: Write) -> None:
    write("metrics.csv", CSV)
    write("config.json", "{}")
    write("sub/metrics.csv", CSV)
    write("sub/files/args.json", "{}")
    write("sub/hparams.yaml", "a: 1\n")
    outer, inner = sorted(discover(tmp_path).runs, key=lambda r: len(str(r.path)))
    assert [a.path.name for a in outer.adjuncts] == ["config.json"]
    assert [a.path.name for a in inner.adjuncts] == ["hparams.yaml", "args.json", "config.json"]


def test_broken_builtin_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "MODULES", ("csv_table", "no_such_parser"))
    builtin.parsers.cache_clear()
    try:
        found = builtin.parsers()
    finally:
        monkeypatch.undo()
        builtin.parsers.cache_clear()
    assert [p.NAME for p in found.loaded] == ["csv"]
    assert "no_such_parser" in found.failed[0]
