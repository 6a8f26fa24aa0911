from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli.main import main

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.01)
    layer(torch.ones(8)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        layer.weight[3, 5] = 1e6
    torch.save({"step": 7, "model": layer.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, tmp_path / "a.pt")
    return tmp_path / "a.pt"


def test_a_pointer_is_said_on_the_terminal_and_in_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pt"
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    assert main(["inspect", str(path), "--json", str(tmp_path / "out.json"), "--quiet"]) == 2
    assert "git lfs pull" in capsys.readouterr().err
    assert "git lfs pull" in json.loads((tmp_path / "out.json").read_text())["damage"][0]["what"]


def test_names_of_tensors_are_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"[red]a": torch.ones(3), "[/x]": torch.ones(3)}, tmp_path / "a.pt")
    assert main(["inspect", str(tmp_path / "a.pt")]) == 0
    assert "[red]a" in capsys.readouterr().out


def test_the_contract(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = document["checkpoint"]
    assert document["damage"] == []
    assert (found["format"], found["step"], found["rng"], found["scaler"], found["scheduler"]) == ("torch zip", 7, ["rng"], None, None)
    (group,) = found["param_groups"]
    assert {k: group[k] for k in ("lr", "betas", "eps", "weight_decay", "params")} == {
        "lr": 0.01,
        "betas": [0.9, 0.999],
        "eps": 1e-08,
        "weight_decay": 0.01,
        "params": ["weight", "bias"],
    }
    tensors = {(t["name"], t["kind"]): t for t in found["tensors"]}
    assert set(tensors) == {(n, k) for n in ("weight", "bias") for k in ("param", "exp_avg", "exp_avg_sq")}
    weight = tensors["weight", "param"]
    assert (weight["shape"], weight["dtype"], weight["max_abs"], weight["non_finite"]) == ([8, 8], "float32", 1e6, 0)
    assert weight["norm"] == pytest.approx(1e6)
    assert weight["outliers"][0]["index"] == [3, 5]


def test_offenders_come_first(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("!  weight: element [3, 5] is 1e+06") for line in lines)
    head = next(i for i, line in enumerate(lines) if line.startswith("tensor"))
    assert lines[head + 1].startswith("weight")


def test_numbers_can_be_left_unread(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--no-norms"]) == 0
    assert "--norms reads them" in capsys.readouterr().out


def test_facts_need_neither_torch_nor_numpy(path: Path) -> None:
    code = f"import sys; from forensics.cli.main import main; main(['inspect', {str(path)!r}, '--no-norms', '--json', '-']); print('HAS', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "polars", "rich"} & set(done.stdout.rpartition("HAS")[2].split())
