"""Reading a discovered run: failing parsers first, then collisions of names, then whole runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.model import Attempt, Run
from forensics.parsers import builtin, csv_table, hf_trainer
from forensics.parsers.discovery import discover
from forensics.parsers.interface import NotMine
from forensics.parsers.reading import read

FIXTURES = Path(__file__).parents[3] / "fixtures"


def only(path: Path, **more: object) -> Run:
    (found,) = discover(path).runs
    return read(found, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (RuntimeError("odd"), "the parser failed: RuntimeError: odd"),
        (NotMine("no"), "not a csv file after all"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_parser_that_fails_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, said: str) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n")

    def parse(*_args: object) -> None:
        raise problem

    monkeypatch.setattr(csv_table, "parse", parse)
    run = only(tmp_path)
    assert not run.signals
    assert said in run.damage[0].what


def test_file_that_vanished(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,1\n")
    (found,) = discover(tmp_path).runs
    path.unlink()
    assert "No such file" in read(found).damage[0].what


def test_damage_of_discovery_is_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n")
    (tmp_path / "run-x.wandb").write_bytes(b"")
    assert [Path(d.path).name for d in only(tmp_path).damage] == ["run-x.wandb"]


def test_same_name_in_two_formats(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n1,2\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 1}\n{"step": 1, "loss": 2}\n')
    run = only(tmp_path)
    assert {s.name: (s.role, s.rank) for s in run.signals} == {"loss": ("loss", 0), "loss@csv": (run.signals[1].role, run.signals[1].rank)}
    assert [s.format for s in run.sources] == ["jsonl", "csv"]


def test_prefixes_of_tables(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("step,loss,lr\n0,1,0.1\n1,2,0.1\n")
    (tmp_path / "val.csv").write_text("step,loss\n1,2\n")
    run = only(tmp_path)
    assert {s.name: s.role for s in run.signals} == {"train/loss": "loss", "train/lr": "lr", "val/loss": "val_loss"}


def state(losses: list[float], step: int) -> str:
    return json.dumps({"global_step": step, "log_history": [{"loss": x, "step": 10 * i} for i, x in enumerate(losses)]})


def test_older_copies_that_agree_and_that_differ(tmp_path: Path) -> None:
    for name, losses in (("checkpoint-20", [3.0, 2.0]), ("checkpoint-30", [3.0, 9.0, 9.0]), ("checkpoint-40", [3.0, 2.0, 1.0, 0.5])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(state(losses, int(name[-2:])))
    run = only(tmp_path)
    assert [len(s) for s in run.signals] == [4]
    assert len(run.notes["older_copies"]) == 1  # type: ignore[arg-type]
    assert "checkpoint-30" in str(run.notes["rewritten_history"])
    assert "step 10" in str(run.notes["rewritten_history"])
    assert not run.damage


def test_damaged_newest_copy_gives_way_to_a_fuller_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-20").mkdir()
    (tmp_path / "checkpoint-20/trainer_state.json").write_text(state([3.0, 2.0, 1.0], 20))
    (tmp_path / "trainer_state.json").write_text(state([3.0, 2.0, 1.0, 0.5], 30)[:70])
    run = only(tmp_path)
    assert [len(s) for s in run.signals] == [3]
    assert len(run.damage) == 1
    assert "checkpoint-20" in run.damage[0].lost


def test_own_settings_come_before_those_of_folders_above(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"lr": 1, "outer": true}')
    (tmp_path / "run").mkdir()
    (tmp_path / "run/hparams.yaml").write_text("lr: 2\n")
    (tmp_path / "run/metrics.csv").write_text("step,loss\n0,1\n")
    assert only(tmp_path).config == {"lr": 2, "outer": True}


def test_restart_in_a_table(tmp_path: Path) -> None:
    rows = [*range(50), *range(40, 60)]
    (tmp_path / "metrics.csv").write_text("step,loss,lr\n" + "".join(f"{s},{5 - s / 20},0.1\n" for s in rows))
    run = only(tmp_path)
    assert run.attempts == (Attempt(0, 49), Attempt(40, 59, 39))
    assert [s.starts for s in run.signals] == [(0, 50), (0, 50)]


def test_overrides_and_progress(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss,odd\n0,1,7\n")
    seen: list[int] = []
    run = only(tmp_path, progress=seen.append, overrides={"loss": "odd"})
    primary = run.signal("loss")
    assert getattr(primary, "name", None) == "odd"
    assert sum(seen) == (tmp_path / "metrics.csv").stat().st_size


def test_trainer_states_are_not_parsed_twice_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainer_state.json").write_text(state([3.0], 1))
    calls: list[object] = []
    real = hf_trainer.load
    monkeypatch.setattr(hf_trainer, "load", lambda *args: calls.append(args) or real(*args))
    only(tmp_path)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("path", "formats", "points", "setting"),
    [
        ("csv/sparse_eval", ["csv", "config"], 121, "lr"),
        ("jsonl/olmo_names", ["jsonl", "config"], 146, "lr"),
        ("hf/trainer", ["hf_trainer", "config"], 106, "lr"),
        ("mlflow", ["mlflow_files"], 200, "lr"),
    ],
)
def test_fixtures(path: str, formats: list[str], points: int, setting: str) -> None:
    run = only(FIXTURES / path)
    assert [s.format for s in run.sources] == formats
    assert sum(len(s) for s in run.signals) == points == sum(s.points for s in run.sources)
    assert isinstance(run.config[setting], float)
    assert not run.damage
    assert len(run.attempts) == 1
    assert {"loss", "lr", "grad_norm"} <= {s.role for s in run.signals}


def test_builtins_are_all_there() -> None:
    assert builtin.parsers().failed == ()
    assert len({p.NAME for p in builtin.parsers().loaded}) == len(builtin.parsers().loaded)
