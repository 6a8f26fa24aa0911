"""Runs whose checkpoints hold the answer: small ones made here, and the labelled ones beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forensics.model import Case, Event
from forensics.pipeline import analyze

LAB = Path(__file__).parents[3] / "shared" / "replaylab"


def _first(case: Case) -> Event:
    alarms = [e for e in case.events if e.severity != "info"]
    assert alarms
    return alarms[0]


@pytest.mark.skipif(not LAB.is_dir(), reason="the labelled runs are not beside the checkout")
@pytest.mark.parametrize("run", ["b", "e", "f"])
def test_labelled_runs(run: str) -> None:
    label = next(item for item in json.loads((LAB / "labels.json").read_text()) if item["run"].endswith(f"/{run}"))
    case = analyze(LAB / label["run"])
    best = _first(case).hypotheses[0]
    assert best.cause == label["cause"]
    assert best.score > 0.8
    texts = " ".join(e.text for e in best.supporting)
    if "tensor" in label:
        assert f"{label['tensor']}: element [" in texts
        assert f"step {label['checkpoint']}" in texts
    else:
        assert "step count began again" in texts
        assert "weights were right at the first forward" in texts


@pytest.mark.skipif(not LAB.is_dir(), reason="the labelled runs are not beside the checkout")
def test_a_healthy_run_with_checkpoints_stays_healthy() -> None:
    case = analyze(LAB / "runs" / "g")
    assert [e for e in case.events if e.severity != "info"] == []
    assert [c.health for c in case.run.checkpoints] == ["good"] * 3


def test_reading_can_be_refused_and_is_said(tmp_path: Path) -> None:
    run(tmp_path)
    case = analyze(tmp_path, checkpoints="none")
    assert case.run.checkpoints == ()
    assert any(n.what == "silent faults" for n in case.not_checked)


def test_checkpoints_above_the_bound_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    monkeypatch.setattr("forensics.parsers.checkpoints.inspection.AUTO_BYTES", 10)
    case = analyze(tmp_path)
    assert [c.health for c in case.run.checkpoints] == ["not read"] * 2
    assert any("numbers of 2 of 2 checkpoints" in n.what for n in case.not_checked)
    assert {c.health for c in analyze(tmp_path, checkpoints="all").run.checkpoints} == {"good"}


def test_a_torn_checkpoint_is_damage_of_the_case(tmp_path: Path) -> None:
    run(tmp_path)
    path = tmp_path / "b.pt"
    path.write_bytes(path.read_bytes()[:1000])
    case = analyze(tmp_path)
    assert [d.path for d in case.damage] == [str(path)]
    assert [c.health for c in case.run.checkpoints] == ["bad", "good"]


def run(folder: Path) -> None:
    """A short log with two checkpoints beside it."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
    (folder / "log.jsonl").write_text("".join(json.dumps({"step": s, "loss": 2 + 1 / (s + 1)}) + "\n" for s in range(200)))
    for name, step in (("a", 100), ("b", 200)):
        torch.save({"step": step, "model": {"w": torch.randn(20, 20), "v": torch.randn(20)}}, folder / f"{name}.pt")


def test_weights_that_the_optimizer_never_moves(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed; make test installs it")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"step": s, "loss": 2 + 1 / (s + 1)}) + "\n" for s in range(200)))
    torch.manual_seed(0)
    model, other = torch.nn.Linear(20, 20), torch.nn.Linear(20, 20)
    optimizer = torch.optim.AdamW(other.parameters(), lr=1e-3)
    for step in (100, 200):
        for p in other.parameters():
            p.grad = torch.randn_like(p)
        optimizer.step()
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / f"{step}.pt")
    text = analyze(tmp_path).verdict
    assert "all 2 parameters that have gradients are equal to the last bit at steps 100 and 200: weight, bias" in text


def test_the_report_counts_the_checkpoints(tmp_path: Path) -> None:
    from forensics.reports.view import view

    run(tmp_path)
    assert "2 checkpoints, all sound" in view(analyze(tmp_path)).coverage


def test_checkpoints_beside_a_log_in_a_folder_of_its_own(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "log.jsonl").rename(tmp_path / "logs" / "log.jsonl")
    assert len(analyze(tmp_path).run.checkpoints) == 2
    assert analyze(tmp_path / "logs").run.checkpoints == ()
