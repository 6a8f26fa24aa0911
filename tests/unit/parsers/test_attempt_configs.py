"""Settings of single attempts: one file, equal settings, nothing logged, and a resume that changed some."""

from __future__ import annotations

from pathlib import Path

from wandb_records import history, log, run_record

from forensics.loading import load
from forensics.model import Run


def resumed(folder: Path, *configs: dict[str, object]) -> Run:
    """One W&B run that several processes wrote, each with its own settings."""
    for number, config in enumerate(configs):
        steps = range(50 * number, 50 * number + 50)
        bodies = [run_record("same", "night", config), *(history({"loss": 2.0 - step / 1000, "_step": step}, step) for step in steps)]
        path = folder / f"wandb/run-2026010{number + 1}_000000-same/run-same.wandb"
        path.parent.mkdir(parents=True)
        path.write_bytes(log(bodies))
    return load(folder)


def test_one_process_has_no_settings_of_its_own(tmp_path: Path) -> None:
    assert resumed(tmp_path, {"lr": 1e-3}).attempt_configs == ()


def test_a_process_that_logged_none(tmp_path: Path) -> None:
    assert resumed(tmp_path, {"lr": 1e-3}, {}).attempt_configs == ()


def test_a_resume_that_changed_a_setting(tmp_path: Path) -> None:
    run = resumed(tmp_path, {"lr": 1e-3, "clip": 1.0}, {"lr": 1e-3, "clip": 1.0}, {"lr": 2e-3, "clip": 1.0})
    assert len(run.attempts) == 3
    assert [c["lr"] for c in run.attempt_configs] == [1e-3, 1e-3, 2e-3]
    assert run.config["lr"] == 1e-3
