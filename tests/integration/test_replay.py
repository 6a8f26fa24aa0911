"""Whole replays: really trained runs with one fault each, replayed by the command, in a child process on the CPU."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.cli.main import main

torch = pytest.importorskip("torch", reason="a replay needs PyTorch: pip install torch")

PROJECT = Path(__file__).parent / "replay_project"
LAB = Path(__file__).parents[3] / "shared" / "replaylab"


def _module(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


train = _module(PROJECT / "train.py", "replay_project_train")


def healthy(root: Path) -> None:
    train.main(root, train.CONFIG)


def bad_samples(root: Path) -> None:
    root.mkdir(parents=True)
    train.make_data(train.CONFIG, root)
    data = np.load(root / "data.npy")
    ids = train.sample_ids(105, train.CONFIG)
    bad = ids[[2, 9, 11]]
    data[bad, :-1] *= 150.0
    data[bad, -1] = data[bad, :4].argmin(1)  # the class that nobody would take them for
    np.save(root / "data.npy", data)
    train.main(root, train.CONFIG)


def high_rate(root: Path) -> None:
    train.main(root, {**train.CONFIG, "lr_overrides": {str(s): 0.8 for s in range(100, 104)}})


def rotten_weight(root: Path) -> None:
    def hook(step: int, model: Any, optimizer: Any) -> None:
        if step == 105:
            with torch.no_grad():
                model[3].weight[1, 7] = 9000.0

    train.main(root, train.CONFIG, hook)


def lost_optimizer(root: Path) -> None:
    train.main(root, train.CONFIG, last=97)
    train.main(root, train.CONFIG, first=80, resume=root / "checkpoints" / "step_000080.pt", weights_only=True)


def rotten_file(root: Path) -> None:
    train.main(root, train.CONFIG, last=95)
    path = root / "checkpoints" / "step_000080.pt"
    state = torch.load(path, weights_only=True)
    state["model"]["3.weight"][2, 3] = -300.0
    torch.save(state, path)
    train.main(root, train.CONFIG, first=80, resume=path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], None]], Path]:
    """Trains each kind of run once."""
    made: dict[str, Path] = {}

    def get(kind: Callable[[Path], None]) -> Path:
        if kind.__name__ not in made:
            made[kind.__name__] = tmp_path_factory.mktemp("runs") / kind.__name__
            kind(made[kind.__name__])
        return made[kind.__name__]

    return get


def replay(run: Path, out: Path, recipe: str = "recipe", *more: str) -> dict[str, Any]:
    code = main(["replay", str(run), "--recipe", f"{PROJECT / 'recipe.py'}:{recipe}", "--json", str(out), "--device", "cpu", "--quiet", *more])
    assert code == 0
    document: dict[str, Any] = json.loads(out.read_text())
    assert document["schema"] == "forensics-replay/1"
    return document


class TestWrongInput:
    @pytest.mark.parametrize(
        ("recipe", "said"),
        [
            ("raises", "KeyError: 'vocab_file'"),
            ("exits", "SystemExit: 4"),
            ("dies", "exit code 7 before the replay was done"),
            ("incomplete", "the recipe has no build, batch, loss"),
            ("nothing_of_this_name", "has no 'nothing_of_this_name'; it defines "),
            ("OtherModel", "is a checkpoint of another model: 0.weight is (24, 12) there and (24, 5) here"),
            ("BadBatch", "FileNotFoundError: shard_0003.bin"),
        ],
    )
    def test_a_recipe_that_fails_is_one_message(self, runs: Any, capsys: pytest.CaptureFixture[str], recipe: str, said: str) -> None:
        code = main(["replay", str(runs(healthy)), "--recipe", f"{PROJECT / 'recipe.py'}:{recipe}", "--device", "cpu"])
        err = capsys.readouterr().err
        assert code == 2
        assert said in err
        assert "Traceback" not in err

    def test_a_recipe_that_hangs_is_ended(self, runs: Any, capsys: pytest.CaptureFixture[str]) -> None:
        code = main(["replay", str(runs(healthy)), "--recipe", f"{PROJECT / 'recipe.py'}:hangs", "--device", "cpu", "--timeout", "6"])
        assert code == 2
        assert "did not end within 6 s" in capsys.readouterr().err

    def test_a_missing_recipe_and_a_missing_checkpoint(self, runs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run = str(runs(healthy))
        assert main(["replay", run, "--recipe", str(tmp_path / "none.py")]) == 2
        assert "there is no recipe" in capsys.readouterr().err
        recipe = str(PROJECT / "recipe.py")
        assert main(["replay", run, "--recipe", recipe, "--checkpoint", str(tmp_path / "none.pt")]) == 2
        assert "there is no checkpoint" in capsys.readouterr().err
        assert main(["replay", run, "--recipe", recipe, "--step", "20"]) == 2
        assert "no checkpoint at or before step 20: the first one is of step 40" in capsys.readouterr().err

    def test_a_run_without_checkpoints(self, runs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "metrics.jsonl").write_bytes((runs(healthy) / "metrics.jsonl").read_bytes())
        assert main(["replay", str(tmp_path), "--recipe", str(PROJECT / "recipe.py")]) == 2
        assert "no checkpoint was found beside the log" in capsys.readouterr().err

    def test_a_recipe_that_prints_and_forks_does_no_harm(self, runs: Any, tmp_path: Path) -> None:
        assert replay(runs(healthy), tmp_path / "out.json", "Noisy", "--step", "100")["verdict"] == "none"


class TestVerdicts:
    def test_other_data_is_no_replay_of_this_run(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(bad_samples), tmp_path / "out.json", "OtherData")
        assert found["verdict"] == "not_reproduced"
        assert "not those of the log" in found["why"]

    @pytest.mark.parametrize("recipe", ["recipe", "OwnStep"])
    def test_a_healthy_run_agrees_with_its_log(self, runs: Any, tmp_path: Path, recipe: str) -> None:
        found = replay(runs(healthy), tmp_path / "out.json", recipe, "--step", "130")
        assert (found["verdict"], found["reproduced"], found["cause"]) == ("none", True, None)
        assert all(r["loss"] == pytest.approx(r["logged_loss"], rel=1e-5) for r in found["steps"])

    def test_bad_samples_are_named(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(bad_samples), tmp_path / "out.json")
        ids = [int(i) for i in train.sample_ids(105, train.CONFIG)[[2, 9, 11]]]
        assert (found["verdict"], found["reproduced"]) == ("data", True)
        assert sorted(found["culprits"]["samples"]) == sorted(ids)

    def test_a_high_learning_rate_is_calmed_by_a_lower_one(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(high_rate), tmp_path / "out.json")
        assert (found["verdict"], found["cause"]) == ("state_step_size", "lr_rewarm_or_jump")
        assert found["calm_with"][0].startswith("lr x")

    def test_a_weight_that_rotted_in_memory_is_found_in_the_next_checkpoint(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(rotten_weight), tmp_path / "out.json")
        assert (found["verdict"], found["cause"], found["reproduced"]) == ("transient_hardware", "sdc_transient", False)
        assert found["culprits"]["tensor"] == "3.weight"

    def test_a_resume_without_optimizer_state(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(lost_optimizer), tmp_path / "out.json", "recipe", "--step", "80")
        assert (found["verdict"], found["cause"]) == ("lost_state", "resume_optimizer_lost")

    def test_a_rotten_file(self, runs: Any, tmp_path: Path) -> None:
        found = replay(runs(rotten_file), tmp_path / "out.json", "recipe", "--step", "80")
        assert (found["verdict"], found["cause"], found["reproduced"]) == ("state", "resume_weights_wrong", True)
        assert found["culprits"]["tensor"] == "3.weight"


class TestTheCase:
    def test_the_replay_becomes_evidence(self, runs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        case = tmp_path / "case.json"
        assert main(["analyze", str(runs(bad_samples)), "--json", str(case), "--quiet"]) == 0
        assert main(["replay", str(case), "--event", "E1", "--recipe", str(PROJECT / "recipe.py"), "--device", "cpu", "--html", str(tmp_path / "r.html")]) == 0
        assert "samples" in capsys.readouterr().out
        event = json.loads(case.read_text())["events"][0]
        assert event["replay"]["verdict"] == "data"
        best = event["hypotheses"][0]
        assert best["cause"] == event["replay"]["cause"]
        assert best["score"] > 0.9
        assert "replay" in best["for"][0]["text"]
        assert main(["report", str(case)]) == 0

    def test_the_plan_runs_nothing(self, runs: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", str(runs(bad_samples)), "--recipe", f"{PROJECT / 'recipe.py'}:dies", "--plan"]) == 0
        out = "".join(capsys.readouterr().out.split())
        assert "step_000080.pt" in out
        assert "atmost" in out


@pytest.mark.skipif(not LAB.is_dir(), reason="the replay lab is not beside the checkout")
class TestReplayLab:
    @pytest.mark.parametrize("name", list("abcdefg"))
    def test_the_true_verdict_and_culprit(self, name: str, tmp_path: Path) -> None:
        truth = next(t for t in json.loads((LAB / "labels.json").read_text()) if t["run"] == f"runs/{name}")
        recipe = tmp_path / "recipe.py"
        text = (PROJECT / "recipe.py").read_text()
        recipe.write_text(f"import sys\nsys.path.insert(0, {str(LAB)!r})\n" + text.replace("from __future__ import annotations\n", ""))
        out = tmp_path / "out.json"
        more = ["--step", str(truth["step"])] if truth["step"] is not None else []
        assert main(["replay", str(LAB / truth["run"]), "--recipe", str(recipe), "--json", str(out), "--device", "cpu", "--quiet", *more]) == 0
        found = json.loads(out.read_text())
        assert found["verdict"] == truth["verdict"]
        assert found["cause"] in truth.get("accept", [truth["cause"]])
        if truth["reproduces"] is not None:
            assert found["reproduced"] == truth["reproduces"]
        assert sorted(found["culprits"]["samples"]) == sorted(truth.get("samples", []))
        assert found["culprits"]["tensor"] == truth.get("tensor")
        if "module" in truth:
            assert found["culprits"]["module"] == truth["module"]
            assert found["microscope"]["first_bad"]["where"] == truth["pass"]
        if "calm_with" in truth:
            assert truth["calm_with"] in found["calm_with"]
