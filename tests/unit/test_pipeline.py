from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from forensics.errors import InputError, SeveralRunsError
from forensics.loading import load
from forensics.model import Case, EventKind, Series, Severity, to_json
from forensics.pipeline import analyze
from tests.unit.synthetic import bump, falling

ROOT = Path(__file__).parents[2]
LABELLED = ROOT / "fixtures/labelled"
DEMO = ROOT / "forensics/demo_run"
TABLE = LABELLED / "lr_spike"


def table(path: Path, columns: dict[str, object], points: int) -> Path:
    names = list(columns)
    rows = zip(*(np.asarray(columns[n]).tolist() for n in names), strict=True)
    path.write_text(",".join(["step", *names]) + "\n" + "".join(f"{i}," + ",".join(map(str, row)) + "\n" for i, row in zip(range(points), rows, strict=True)))
    return path


def alarms(case: Case) -> list[tuple[EventKind, int]]:
    return [(e.kind, e.onset_step) for e in case.events if e.severity is not Severity.INFO]


class TestErrors:
    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist") as caught:
            analyze(tmp_path / "nothing")
        assert caught.value.hint

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no files in it"):
            analyze(tmp_path)

    def test_a_binary_file(self, tmp_path: Path) -> None:
        (tmp_path / "weights.dat").write_bytes(random.Random(0).randbytes(70_000))
        for path in (tmp_path, tmp_path / "weights.dat"):
            with pytest.raises(InputError, match="nothing to read"):
                analyze(path)

    @pytest.mark.parametrize("name", ["run.csv", "run.jsonl", "run.wandb", "events.out.tfevents.1.host", "trainer_state.json", "mlflow.db"])
    @pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"\xff\xfe broken \x00\x01", b"{", b"[" * 9000])
    def test_a_broken_log(self, tmp_path: Path, name: str, content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError):
            analyze(tmp_path)

    def test_several_runs_are_listed(self, tmp_path: Path) -> None:
        for name in ("first", "second"):
            shutil.copytree(DEMO, tmp_path / name)
        with pytest.raises(SeveralRunsError) as caught:
            analyze(tmp_path)
        assert [name for name, _ in caught.value.runs] == ["first", "second"]
        assert analyze(tmp_path, choose="second").run.name == "second"
        with pytest.raises(InputError, match="no run under"):
            analyze(tmp_path, choose="third")

    def test_a_metric_that_is_not_logged(self) -> None:
        with pytest.raises(InputError, match="the log has no 'nothing'") as caught:
            analyze(DEMO, metrics={"loss": "nothing"})
        assert "learning_rate" in caught.value.hint

    def test_no_name_that_means_anything(self, tmp_path: Path) -> None:
        path = table(tmp_path / "run.csv", {"foo": range(50), "bar": range(50)}, 50)
        with pytest.raises(InputError, match="no logged name was recognised") as caught:
            analyze(path)
        assert "foo, bar" in caught.value.hint


class TestDamage:
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.999])
    def test_a_truncated_event_file_is_read_as_far_as_it_goes(self, tmp_path: Path, share: float) -> None:
        source = next((LABELLED / "nan_batch").iterdir())
        data = source.read_bytes()
        (tmp_path / source.name).write_bytes(data[: int(len(data) * share)])
        case = analyze(tmp_path)
        assert case.damage
        assert all(d.lost for d in case.damage)
        assert case.run.last_step is not None
        assert case.run.last_step > 390 * share - 30

    def test_nothing_found_in_damaged_input_is_not_called_healthy(self, tmp_path: Path) -> None:
        source = next((LABELLED / "nan_batch").iterdir())
        data = source.read_bytes()
        (tmp_path / source.name).write_bytes(data[: len(data) // 4])
        assert "damaged" in analyze(tmp_path).verdict

    def test_a_table_with_broken_rows(self, tmp_path: Path) -> None:
        lines = (TABLE / "metrics.csv").read_text().splitlines()
        lines[100] = "oops"
        lines[200] = "199,not a number,,,,"
        (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
        assert 429 in {onset for _, onset in alarms(analyze(tmp_path))}


class TestCases:
    def test_the_learning_rate_spike(self) -> None:
        case = analyze(DEMO)
        ((_, onset),) = alarms(case)
        event = case.events[0]
        assert onset == 352
        assert event.id == "E1"
        assert event.hypotheses[0].cause == "lr_rewarm_or_jump"
        assert not event.undetermined
        assert {b.step for b in event.batches} >= {351, 352}
        assert any(r.role == "lr" for r in event.related)
        assert "352" in case.verdict

    def test_the_clean_run(self) -> None:
        case = analyze(LABELLED / "clean")
        assert alarms(case) == []
        assert case.verdict.startswith("Nothing unusual")

    def test_the_bad_batch(self) -> None:
        case = analyze(LABELLED / "bad_batch")
        ((kind, onset),) = alarms(case)
        assert (kind, onset) == (EventKind.SPIKE, 331)
        assert case.events[0].hypotheses[0].cause == "bad_batch_outlier"

    def test_the_nan(self) -> None:
        case = analyze(LABELLED / "nan_batch")
        assert (EventKind.NON_FINITE, 338) in alarms(case)
        assert "nan_in_input" in {h.cause for h in case.events[0].hypotheses[:3]}

    def test_every_number_leads_to_its_record(self) -> None:
        case = analyze(TABLE)
        lines = (TABLE / "metrics.csv").read_text().splitlines()
        header = lines[0].split(",")
        for fact in (f for h in case.events[0].hypotheses for f in (*h.supporting, *h.against) if f.source and f.step is not None):
            path, _, record = str(fact.source).rpartition("#")
            row = dict(zip(header, lines[int(record) - 1].split(","), strict=True))
            assert Path(path).name == "metrics.csv"
            assert int(row["step"]) == fact.step
            assert fact.signal in row

    def test_sources_are_hashed(self) -> None:
        table_source = next(s for s in analyze(TABLE).run.sources if s.path.endswith("metrics.csv"))
        assert table_source.sha256 == hashlib.sha256((TABLE / "metrics.csv").read_bytes()).hexdigest()
        assert table_source.points == 4500

    def test_the_same_run_gives_the_same_case(self) -> None:
        assert json.dumps(to_json(analyze(DEMO))) == json.dumps(to_json(analyze(DEMO)))

    def test_no_loss_is_a_report_that_says_so(self, tmp_path: Path) -> None:
        case = analyze(table(tmp_path / "run.csv", {"lr": [1e-3] * 300, "grad_norm": falling(300, 1)}, 300))
        assert "loss" in {n.what for n in case.not_checked}
        assert "no loss is logged" in case.verdict

    def test_an_override_is_used(self, tmp_path: Path) -> None:
        path = table(tmp_path / "run.csv", {"curve_a": falling(900, 1) * bump(900, 500, 1.0, 5), "loss": falling(900, 2)}, 900)
        assert alarms(analyze(path)) == []
        assert alarms(analyze(path, metrics={"loss": "curve_a"})) == [(EventKind.SPIKE, 500)]

    def test_a_path_may_be_a_text(self) -> None:
        assert analyze(str(DEMO)).run.name == analyze(DEMO).run.name

    def test_one_point(self, tmp_path: Path) -> None:
        assert alarms(analyze(table(tmp_path / "run.csv", {"loss": [2.0]}, 1))) == []


class TestSeries:
    def test_the_extremes_and_the_event_are_whole(self) -> None:
        case, run = analyze(DEMO), load(DEMO)
        for signal in run.signals:
            series = case.series.get(signal.name, Series((), ()))
            if not series.steps:
                continue
            assert float(signal.values.max()) in series.values
            assert float(signal.values.min()) in series.values
        steps = set(case.series["loss"].steps)
        assert set(range(320, 420)) <= steps

    def test_what_an_event_names_is_drawn(self) -> None:
        case = analyze(DEMO)
        named = {e.signal for e in case.events} | {r.signal for e in case.events for r in e.related}
        assert named <= set(case.series)
