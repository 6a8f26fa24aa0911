"""What to log next time: nothing missing, every framework and logger, code that compiles and runs, names that are recognised."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from forensics.advice.logging import _VALUES, Framework, Logger, _code, logging_advice, sentence
from forensics.cli.main import main
from forensics.model import Case, Event, EventKind, Hypothesis, NotChecked, Part, RunInfo, Severity, SignalInfo, SourceInfo
from forensics.reports import json_report
from forensics.vocabulary import classify


def case(*roles: str, formats: str = "csv", every: float = 1.0, cause: str | None = None, **config: object) -> Case:
    signals = tuple(SignalInfo(r, r, 100, 0, 99, every, 0, True) for r in roles)
    hypotheses = () if cause is None else (Hypothesis(cause, "title", 0.9, Part.TRIGGER),)
    events = (Event(EventKind.SPIKE, Severity.WARNING, 0.9, "loss", 500, 500, "E1", hypotheses=hypotheses),)
    return Case("0", RunInfo("run", "run", (SourceInfo("f", formats, 100),), config=config), signals, "", events)


def test_nothing_is_missing() -> None:
    advice = logging_advice(case("loss", "lr", "grad_norm", "batch_id"))
    assert (advice.wanted, advice.settings, advice.code) == ((), (), "")
    assert sentence(advice) == ""


def test_position_in_the_data_stands_for_batch_ids() -> None:
    assert logging_advice(case("loss", "lr", "grad_norm", "samples")).wanted == ()


def test_half_precision_needs_the_scale() -> None:
    assert [w.name for w in logging_advice(case("loss", "lr", "grad_norm", "batch_id", fp16=True)).wanted] == ["loss_scale"]


def test_fragile_states_need_the_size_of_the_update() -> None:
    assert [w.name for w in logging_advice(case("loss", "lr", "grad_norm", "batch_id", cause="adam_v_stale")).wanted] == ["update_rms"]


@pytest.mark.parametrize(
    ("formats", "config", "framework"),
    [
        ("hf_trainer", {}, Framework.HF),
        ("wandb", {"per_device_train_batch_size": 8}, Framework.HF),
        ("console.lightning", {}, Framework.LIGHTNING),
        ("console.megatron", {}, Framework.MEGATRON),
        ("jsonl", {}, Framework.OWN),
    ],
)
def test_the_framework_is_read_off_the_log(formats: str, config: dict[str, object], framework: Framework) -> None:
    advice = logging_advice(case("loss", formats=formats, every=10.0, **config))
    assert advice.framework is framework
    assert sentence(advice)
    if framework is not Framework.OWN:
        assert any("1" in option for option in advice.settings)


def test_the_nan_filter_is_switched_off() -> None:
    found = case("loss", formats="hf_trainer")
    found = Case(found.tool_version, found.run, found.signals, "", not_checked=(NotChecked("NaN losses", "filter"),))
    assert "logging_nan_inf_filter=False" in logging_advice(found).settings


@pytest.mark.parametrize(("framework", "logger"), list(itertools.product(Framework, Logger)))
def test_all_code_compiles(framework: Framework, logger: Logger) -> None:
    for names in (tuple(_VALUES), ("lr",), ("batch_id",), ("update_rms",)):
        code = _code(framework, logger, names, ("logging_steps=1",))
        if framework is not Framework.MEGATRON:
            compile(code, "advice.py", "exec")


def test_what_it_logs_is_recognised() -> None:
    assert [classify(name)[0] for name in _VALUES] == list(_VALUES)


def test_the_code_runs() -> None:
    torch = pytest.importorskip("torch", reason="the training code needs PyTorch")
    code = _code(Framework.OWN, Logger.LINES, ("lr", "grad_norm", "batch_id", "update_rms"), ())
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    written: list[str] = []
    batch = {"x": torch.randn(8, 4), "ids": torch.arange(8), "text": "kept out"}
    scope: dict[str, object] = {"model": model, "optimizer": optimizer, "batch": batch}
    scope["log_file"] = type("File", (), {"write": lambda _, text: written.append(text)})()
    for step in range(20):
        optimizer.zero_grad()
        (model(torch.randn(8, 4)) ** 2).mean().backward()
        exec(compile(code, "advice.py", "exec"), scope | {"step": step})
        optimizer.step()
    facts = [json.loads(row) for row in written]
    assert facts[0]["update_rms"] == 0.0
    assert 0.1 < facts[-1]["update_rms"] < 10
    assert len({f["batch_id"] for f in facts}) == 1
    assert 0 <= facts[0]["batch_id"] < 2**24
    assert all(f["grad_norm"] > 0 and f["lr"] == 1e-3 for f in facts)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.json"
    with path.open("w") as file:
        json_report.render(case("loss", cause="bad_batch_outlier"), file)
    assert main(["advise", str(path), "--code"]) == 0
    compile(capsys.readouterr().out, "advice.py", "exec")
    (tmp_path / "saved/checkpoint-450").mkdir(parents=True)
    (tmp_path / "saved/checkpoint-510").mkdir()
    assert main(["advise", str(path), "--checkpoints", str(tmp_path / "saved")]) == 0
    out = capsys.readouterr().out
    assert "checkpoint-450 (step 450)" in out
    assert "Leave out the batches of steps 499 to 500" in out
    assert "log batch_id" in out
