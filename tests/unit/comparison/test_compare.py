"""Two runs side by side: nothing in common, equal, another setting, the same batch, other data, damage, and the outputs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from forensics.cli.main import main
from forensics.comparison import compare
from forensics.model import FloatArray, Run, Signal, SourceInfo, Span
from forensics.model.comparison import Comparison, DataOrder
from forensics.pipeline import build_case
from forensics.reports import comparison as report
from forensics.vocabulary import assign_roles

POINTS = 1000


class Pair:
    """A run whose batches come in the order of ``data``; ``own`` is the noise that only this run has."""

    def __init__(self, data: int = 0, own: int = 1, first: int = 0) -> None:
        t = np.arange(POINTS)
        batches = np.random.default_rng(data)
        self.ids: FloatArray = batches.permutation(POINTS).astype(np.float64)
        shared, mine = batches.normal(size=POINTS), np.random.default_rng(own).normal(size=POINTS)
        self.loss: FloatArray = (2 + np.exp(-t / 200)) * np.exp(0.03 * shared + 0.003 * mine)
        self.lr: FloatArray = np.full(POINTS, 1e-3)
        self.config: dict[str, object] = {"lr": 1e-3, "clip": 1.0, "output_dir": f"runs/{own}", "seed": 1}
        self.first = first

    def run(self, *without: str) -> Run:
        steps = self.first + np.arange(POINTS, dtype=np.int64)
        named = {"loss": self.loss, "lr": self.lr, "batch_id": self.ids}
        signals = [Signal(n, steps, v, spans=(Span(0, 0, POINTS),)) for n, v in named.items() if n not in without]
        return Run("run", "run", (SourceInfo("log.csv", "csv", POINTS),), assign_roles(signals), (), self.config)


def compared(a: Pair, b: Pair, *without: str) -> Comparison:
    left, right = a.run(*without), b.run(*without)
    return compare(left, build_case(left), right, build_case(right))


def parting(found: Comparison, role: str) -> tuple[int | None, int | None]:
    return next((p.first_difference, p.apart_from) for p in found.partings if p.role == role)


def test_no_step_in_common() -> None:
    found = compared(Pair(), Pair(first=5000))
    assert found.shared_steps is None
    assert "no logged step in common" in found.verdict
    assert found.partings == ()


def test_one_run_breaks_off_into_nan() -> None:
    b = Pair(own=1)
    b.loss[700:] = np.nan
    found = compared(Pair(own=1), b)
    assert parting(found, "loss") == (700, 700)


def test_equal_runs() -> None:
    found = compared(Pair(), Pair())
    assert parting(found, "loss") == (None, None)
    assert "equal to the last digit" in found.verdict
    assert "No setting that trains anything differs" in found.verdict
    assert found.data_order is DataOrder.SAME


def test_noise_is_no_parting() -> None:
    found = compared(Pair(own=1), Pair(own=2))
    assert parting(found, "loss") == (0, None)
    assert "never part" in found.verdict
    assert [d.key for d in found.settings] == ["output_dir"]
    assert found.settings[0].bookkeeping


def test_other_data_is_no_parting_either() -> None:
    assert parting(compared(Pair(data=1), Pair(data=2)), "loss")[1] is None


def test_a_setting_that_changes_the_run() -> None:
    b = Pair(own=2)
    b.config["clip"] = 0.1
    b.lr[400:] = 2e-3
    b.loss[450:] *= 1.2
    found = compared(Pair(own=1), b)
    assert parting(found, "lr") == (400, 400)
    apart = parting(found, "loss")[1]
    assert apart is not None
    assert abs(apart - 450) <= 2
    assert "part at step 400 in lr" in found.verdict
    assert "clip 1.0 against 0.1" in found.verdict
    assert found.settings[0].key == "clip"


def test_numbers_written_differently_are_equal() -> None:
    a, b = Pair(), Pair()
    a.config |= {"steps": 1000, "bf16": True}
    b.config |= {"steps": "1e3", "bf16": "true"}
    assert [d.key for d in compared(a, b).settings if not d.bookkeeping] == []


def test_the_same_batch_broke_both() -> None:
    a, b = Pair(own=1), Pair(own=2)
    for side in (a, b):
        side.loss[600] *= 2
    found = compared(a, b)
    (step,) = found.same_steps
    assert (step.step, step.same_batch) == (600, True)
    assert "bad_batch_outlier" in step.points_to
    assert "sdc_transient" in step.speaks_against
    assert found.chance is not None
    assert found.chance < 0.05


def test_the_same_step_on_other_data_is_not_the_batch() -> None:
    a, b = Pair(data=1), Pair(data=2)
    for side in (a, b):
        side.loss[600] *= 2
    (step,) = compared(a, b).same_steps
    assert step.same_batch is False
    assert "bad_batch_outlier" in step.speaks_against


def test_only_one_run_broke_on_a_batch_that_both_saw() -> None:
    a, b = Pair(own=1), Pair(own=2)
    b.loss[600] *= 2
    found = compared(a, b)
    (step,) = found.same_steps
    assert (step.a_event, step.b_event, step.same_batch) == (None, "E1", True)
    assert "batch_state_interaction" in step.points_to
    assert found.chance is None


def test_the_order_of_data_without_ids() -> None:
    assert compared(Pair(own=1), Pair(own=2), "batch_id").data_order is DataOrder.SAME
    assert compared(Pair(data=1), Pair(data=2), "batch_id").data_order is DataOrder.DIFFERENT


def test_ids_that_only_count_say_nothing() -> None:
    a, b = Pair(data=1), Pair(data=2)
    a.ids = b.ids = np.arange(POINTS, dtype=np.float64)
    found = compared(a, b)
    assert found.data_order is DataOrder.DIFFERENT
    assert "only count" in found.data_order_why


def test_no_settings_are_no_equal_settings() -> None:
    a, b = Pair(), Pair(own=2)
    a.config = b.config = {}
    found = compared(a, b)
    assert "not logged by both" in found.verdict
    assert any("no settings" in text for text in found.not_checked)


def test_hostile_names_do_not_reach_the_terminal() -> None:
    a, b = Pair(), Pair()
    b.config["evil\x1b[2J"] = "x\x1b]0;y\x07"
    out = io.StringIO()
    report.render(compared(a, b), out)
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, own in (("a", 1), ("b", 2)):
        side = Pair(own=own)
        rows = "".join(f"{i},{v:.6f},{d:.0f}\n" for i, (v, d) in enumerate(zip(side.loss, side.ids, strict=True)))
        (tmp_path / f"{name}.csv").write_text("step,loss,batch_id\n" + rows)
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--json", str(tmp_path / "out.json")]) == 0
    assert "Data order: same" in capsys.readouterr().out
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["schema"] == "forensics-compare/1"
    assert data["data_order"] == "same"
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "none.csv")]) == 2
    assert "does not exist" in capsys.readouterr().err
