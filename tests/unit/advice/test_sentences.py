"""Advice in the case: none where nothing is wrong, bounded, without home folders, and in every report."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forensics.advice.sentences import MOST, advice, leaving_out
from forensics.cli.main import main
from forensics.model import Case, Event, EventKind, Hypothesis, Part, RunInfo, Severity, SignalInfo
from forensics.reports import html, json_report, markdown


def case(*causes: str, severity: Severity = Severity.WARNING) -> Case:
    events = tuple(
        Event(EventKind.SPIKE, severity, 0.9, "loss", 500 + 10 * n, 500 + 10 * n, f"E{n}", hypotheses=(Hypothesis(cause, "title", 0.9, Part.TRIGGER),))
        for n, cause in enumerate(causes, 1)
    )
    signals = tuple(SignalInfo(r, r, 1000, 0, 999, 1.0, 0, True) for r in ("loss", "lr", "grad_norm", "batch_id"))
    return Case("0", RunInfo("run", "run", first_step=0), signals, "", events)


def test_nothing_wrong_needs_no_advice() -> None:
    assert advice(case()) == ()
    assert advice(case("straggler_throttle", severity=Severity.INFO)) == ()


def test_many_alarms_are_bounded() -> None:
    found = advice(case(*["lr_too_high"] * 40))
    assert len(found) == MOST + 1
    assert "32 more alarms" in found[-1]


def test_only_faults_of_the_data_are_left_out() -> None:
    assert leaving_out(case("lr_too_high")) == ()
    assert "steps 509 to 510" in leaving_out(case("bad_batch_outlier"))[0]


def test_the_commands_take_a_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = 2 * np.exp(0.02 * np.random.default_rng(0).normal(size=600))
    values[300] *= 2
    (tmp_path / "metrics.csv").write_text("step,loss\n" + "".join(f"{i},{v:.5f}\n" for i, v in enumerate(values)))
    assert main(["skip", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "299-300\n"
    assert main(["advise", str(tmp_path / "metrics.csv")]) == 0
    assert "step 298 or before" in capsys.readouterr().out
    assert main(["skip", str(tmp_path / "none")]) == 2
    (tmp_path / "case.json").write_text('{"schema": "forensics/99"}')
    assert main(["skip", str(tmp_path / "case.json")]) == 2
    assert "forensics/99" in capsys.readouterr().err


def test_every_report_has_it() -> None:
    told = replace(case("bad_batch_outlier"), advice=("E1: go back to /home/somebody/<b>c</b>.",))
    for render, expected in ((markdown.render, "&lt;b>c"), (html.render, "&lt;b&gt;c"), (json_report.render, "<b>c")):
        out = io.StringIO()
        render(told, out)
        assert expected in out.getvalue()
    out = io.StringIO()
    html.render(told, out)
    assert "somebody" not in out.getvalue()
