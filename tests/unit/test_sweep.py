"""Many runs: nothing to read, broken ones, hostile names, and what those that went wrong have in common."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from forensics.cli.main import main
from forensics.fleet.common import summarise
from forensics.model.fleet import FleetEvent, FleetRun
from forensics.reports import fleet as report


def row(name: str, *onsets: int, cause: str | None = "bad_batch_outlier", batch: int | None = None, counted: bool = False, **config: object) -> FleetRun:
    events = tuple(FleetEvent(f"E{n}", "spike", "warning", s, cause, 0.8, batch) for n, s in enumerate(onsets, 1))
    return FleetRun(f"runs/{name}", name, "", "", 0, 9999, 30000, events, 0, 0, counted, 10000, config)


def write(folder: Path, name: str, *, spike: int | None = None, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    loss = (2 + np.exp(-np.arange(400) / 100)) * np.exp(0.02 * rng.normal(size=400))
    if spike is not None:
        loss[spike] *= 2
    (folder / name).mkdir(parents=True)
    (folder / name / "log.csv").write_text("step,loss\n" + "".join(f"{i},{v:.5f}\n" for i, v in enumerate(loss)))


def test_a_folder_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(tmp_path)]) == 2
    assert main(["sweep", str(tmp_path / "none")]) == 2
    assert main(["sweep", str(tmp_path), "--jobs", "0"]) == 2
    assert "no run below" in capsys.readouterr().err


def test_no_run_could_be_read() -> None:
    found = summarise("runs", [FleetRun("a", "a", problem="torn")])
    assert found.verdict == "0 of 1 runs went wrong, 1 could not be read."


def test_one_run_has_nothing_in_common() -> None:
    found = summarise("runs", [row("a", 500, batch=7)])
    assert (found.batches, found.steps, found.settings) == ((), (), ())


def test_events_all_over_the_place_are_chance() -> None:
    runs = [row(str(n), *range(100 * n, 9000, 700)) for n in range(8)]
    assert summarise("runs", runs).steps == ()


def test_ids_that_count_are_no_batches() -> None:
    found = summarise("runs", [row(str(n), 500, batch=7, counted=True) for n in range(3)])
    assert found.batches == ()
    assert any("only count" in text for text in found.not_checked)


def test_a_setting_that_two_runs_have_is_no_proof() -> None:
    assert summarise("runs", [row("a", 500, lr=0.1), row("b", 900, lr=0.1), row("c", lr=0.2)]).settings == ()


def test_a_batch_that_broke_several_runs() -> None:
    found = summarise("runs", [row("a", 500, batch=7), row("b", 800, batch=7), row("c"), row("d", 100, batch=3)])
    (batch,) = found.batches
    assert (batch.batch_id, batch.runs, batch.steps) == (7, ("a", "b"), (500, 800))
    assert batch.p_value < 1e-3
    assert "batch 7" in found.verdict


def test_a_step_that_broke_several_runs() -> None:
    found = summarise("runs", [row("a", 947), row("b", 946), row("c", 947), row("d", 20)])
    (step,) = found.steps
    assert (step.step, step.runs) == (946, ("a", "b", "c"))
    assert "at step 946" in found.verdict


def test_a_setting_that_goes_with_trouble() -> None:
    runs = [row(f"hot{n}", 300 + 90 * n, cause="lr_too_high", lr=0.01, seed=n) for n in range(8)] + [row(f"cool{n}", lr=0.001, seed=8 + n) for n in range(8)]
    found = summarise("runs", runs)
    (setting,) = found.settings
    assert (setting.key, setting.value, setting.bad_with, setting.bad_without) == ("lr", 0.01, 8, 0)
    assert found.causes[0].cause == "lr_too_high"


def test_hostile_names() -> None:
    found = summarise("runs", [row("\x1b[2Jx" + "y" * 300, 5, cause="c\x07")])
    out = io.StringIO()
    out.write(report.row(found.runs[0]))
    report.common(found, out)
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    write(tmp_path / "runs", "calm")
    write(tmp_path / "runs", "broken", spike=200, seed=1)
    (tmp_path / "runs/torn").mkdir()
    (tmp_path / "runs/torn/log.csv").write_text("step,loss\n")
    code = main(["sweep", str(tmp_path / "runs"), "--jobs", jobs, "--json", str(tmp_path / "out.json"), "--cases", str(tmp_path / "cases")])
    out = capsys.readouterr().out
    assert "bad_batch_outlier" in out
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["schema"] == "forensics-sweep/1"
    assert {r["name"]: len(r["events"]) for r in data["runs"] if not r["problem"]} == {"calm": 0, "broken": 1}
    assert code == (3 if any(r["problem"] for r in data["runs"]) else 0)
    cases = sorted((tmp_path / "cases").iterdir())
    assert len(cases) == 2
    assert json.loads(cases[0].read_text())["schema"] == "forensics/1"
    assert main(["sweep", str(tmp_path / "runs"), "--jobs", "1", "--quiet", "--fail-on", "warning"]) == 1
