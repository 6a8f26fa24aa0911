"""Replays on an accelerator: ``make test-gpu``. Everything skips, and says so, where PyTorch sees none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forensics.cli.main import main
from tests.integration.test_replay import PROJECT, bad_samples, healthy, high_rate, rotten_weight

torch = pytest.importorskip("torch", reason="a replay needs PyTorch: pip install torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here"),
]


def replay(run: Path, out: Path, *more: str) -> dict[str, Any]:
    code = main(["replay", str(run), "--recipe", str(PROJECT / "recipe.py"), "--json", str(out), "--device", "cuda", "--quiet", *more])
    assert code == 0
    document: dict[str, Any] = json.loads(out.read_text())
    assert document["device"].startswith("cuda")
    return document


def test_a_log_of_a_cpu_is_judged_within_the_band(tmp_path: Path) -> None:
    healthy(tmp_path / "run")
    found = replay(tmp_path / "run", tmp_path / "out.json", "--step", "130")
    assert (found["verdict"], found["reproduced"]) == ("none", True)


def test_two_replays_on_one_device_agree(tmp_path: Path) -> None:
    healthy(tmp_path / "run")
    found = replay(tmp_path / "run", tmp_path / "out.json", "--step", "130")
    assert found["noise"] == {"loss": 0.0, "grad_norm": 0.0}


@pytest.mark.parametrize(("train", "verdict"), [(bad_samples, "data"), (high_rate, "state_step_size"), (rotten_weight, "transient_hardware")])
def test_verdicts_do_not_depend_on_the_device(tmp_path: Path, train: Any, verdict: str) -> None:
    train(tmp_path / "run")
    assert replay(tmp_path / "run", tmp_path / "out.json")["verdict"] == verdict


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_autocast_and_the_scaler_run(tmp_path: Path, precision: str) -> None:
    healthy(tmp_path / "run")
    recipe = tmp_path / "recipe.py"
    text = (PROJECT / "recipe.py").read_text().replace("from __future__ import annotations\n", "")
    recipe.write_text(f"import sys\nsys.path.insert(0, {str(PROJECT)!r})\n{text}\nRecipe.precision = {precision!r}\n")
    out = tmp_path / "out.json"
    assert main(["replay", str(tmp_path / "run"), "--recipe", str(recipe), "--step", "130", "--device", "cuda", "--json", str(out), "--quiet"]) == 0
    assert json.loads(out.read_text())["steps"]
