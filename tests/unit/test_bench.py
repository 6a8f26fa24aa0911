from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.bench import Label, Row, calibration, figures, judge, judge_all, judge_run, parse_labels, read_labels, sample
from forensics.cli.main import main
from forensics.errors import InputError
from forensics.model import Case, Event, EventKind, Hypothesis, Part, RunInfo, Severity, to_json

ROOT = Path(__file__).parents[2]
LABELS = ROOT / "fixtures/labelled/labels.json"
SCORE = ROOT.parent / "shared/faultlab/score.py"


def label(event: str = "spike", first: int = 100, last: int = 103, **more: object) -> Label:
    fields: dict[str, object] = {"every": 1.0, "injected": "x", "accept": ("right",), "visible": True, **more}
    clean = event == "none"
    return Label("id", "run", event, first=None if clean else first, last=None if clean else last, **fields)  # type: ignore[arg-type]


def event(onset: int, *causes: tuple[str, float], end: int | None = None, severity: Severity = Severity.WARNING) -> Event:
    hypotheses = tuple(Hypothesis(cause, cause, score, Part.TRIGGER) for cause, score in causes)
    return Event(EventKind.SPIKE, severity, 0.9, "loss", onset, onset, end_step=end, hypotheses=hypotheses)


def case(*events: Event) -> Case:
    return Case("0", RunInfo("run", "run"), (), "", events)


def test_nothing_found() -> None:
    assert judge(label(), case()) == Row("id", "spike", 0, found=False, top1=False, top3=False)


def test_found_with_the_right_cause() -> None:
    row = judge(label(), case(event(101, ("right", 0.9), ("wrong", 0.1))))
    assert (row.found, row.error, row.top1, row.top3, row.false, row.said) == (True, 1.0, True, True, 0, ("right", "wrong"))


def test_the_right_cause_among_three() -> None:
    row = judge(label(), case(event(100, ("a", 0.5), ("b", 0.3), ("right", 0.2))))
    assert (row.top1, row.top3) == (False, True)
    assert judge(label(), case(event(100, ("a", 0.5), ("b", 0.3), ("c", 0.2), ("right", 0.1)))).top3 is False


def test_causes_of_all_events_that_found_it_are_ranked_together() -> None:
    assert judge(label(), case(event(100, ("wrong", 0.4)), event(102, ("right", 0.6)))).top1 is True


def test_info_is_no_alarm() -> None:
    assert judge(label(), case(event(100, severity=Severity.INFO))).found is False
    assert judge(label("none"), case(event(100, severity=Severity.INFO))).false == 0


@pytest.mark.parametrize(("onset", "found"), [(94, False), (95, True), (108, True), (109, False)])
def test_tolerance_in_steps(onset: int, found: bool) -> None:
    assert judge(label(), case(event(onset))).found is found


@pytest.mark.parametrize(("onset", "found"), [(79, False), (80, True), (123, True), (124, False)])
def test_tolerance_in_logged_points(onset: int, found: bool) -> None:
    assert judge(label(every=10.0), case(event(onset))).found is found


def test_a_span_that_covers_the_fault_counts_unless_it_is_far_longer() -> None:
    assert judge(label(), case(event(90, end=104))).found is True
    assert judge(label(), case(event(50, end=104))).found is False


def test_what_follows_a_short_fault_soon_is_explained() -> None:
    row = judge(label(), case(event(100), event(303), event(304)))
    assert row.false == 1
    assert judge(label("level_shift"), case(event(100), event(5000))).false == 0


def test_what_comes_before_is_a_false_alarm() -> None:
    assert judge(label("level_shift"), case(event(10), event(100))).false == 1


def test_further_windows_of_the_fault_are_explained() -> None:
    assert judge(label(also=((700, 702),)), case(event(100), event(705), event(900))).false == 1


def test_a_fault_without_a_trace_counts_only_for_false_alarms() -> None:
    row = judge(label(visible=False), case(event(5), event(100)))
    assert (row.found, row.top1, row.false) == (None, None, 1)


def test_a_wide_window_has_no_error() -> None:
    assert judge(label(first=100, last=300), case(event(100))).error is None


def test_a_clean_run() -> None:
    row = judge(label("none"), case(event(7), event(9)))
    assert (row.found, row.false) == (None, 2)
    assert row.said == ("spike at 7", "spike at 9")


def test_a_run_that_cannot_be_analysed_is_missed(tmp_path: Path) -> None:
    row = judge_run(label(), tmp_path)
    assert (row.found, row.top1, row.top3, row.false) == (False, False, False, 0)
    assert "does not exist" in row.said[0]
    assert judge_run(label("none"), tmp_path).false == 1
    assert judge_run(label(visible=False), tmp_path).found is None


def test_figures() -> None:
    labels = [label(), label(), label(first=0, last=99), label("none"), label(visible=False)]
    rows = [
        Row("a", "spike", 1, found=True, error=1.0, top1=True, top3=True),
        Row("b", "spike", 0, found=False, top1=False, top3=False, false=2),
        Row("c", "spike", 1, found=True, top1=False, top3=True),
        Row("d", "none", 1, false=1),
        Row("e", "spike", 0),
    ]
    found = figures(labels, rows)
    assert (found.runs, found.recall, found.top1, found.top3) == (5, pytest.approx(2 / 3), pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (found.onset_error_median, found.onset_within_2) == (1.0, 0.5)
    assert (found.clean_runs, found.clean_runs_with_alarm, found.false_alarms) == (1, 1, 3)


def test_figures_of_nothing() -> None:
    found = figures([], [])
    assert (found.recall, found.onset_error_median) == (0.0, None)


def test_sample() -> None:
    labels = [label()] * 47
    assert len(sample(labels, None)) == 47
    assert len(sample(labels, 14)) == 16
    assert len(sample(labels, 1000)) == 47


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        ("{}", "expected a list"),
        ("[]", "expected a list"),
        ("[3]", "entry 1: expected an object"),
        ('[{"id": "a"}]', "entry 1: run, event, onset missing"),
        ('[{"id": "a", "run": "r", "event": "spike", "onset": [1]}]', "entry 1"),
        ('[{"id": "a", "run": "r", "event": "spike", "onset": ["x", 2]}]', "entry 1"),
        ('[{"id": "a", "run": "r", "event": "spike", "onset": [null, null]}]', "entry 1"),
    ],
)
def test_wrong_labels(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(InputError, match=said):
        read_labels(tmp_path / "labels.json")


def test_labels_of_the_fixtures() -> None:
    labels = read_labels(LABELS)
    assert [x.id for x in labels] == ["clean", "demo", "lr-spike", "bad-batch", "nan-batch"]
    assert labels[0].clean
    assert labels[1].exact


def test_several_processes_give_the_same_rows_in_the_same_order() -> None:
    labels = read_labels(LABELS)
    assert list(judge_all(labels, LABELS.parent, 2)) == list(judge_all(labels, LABELS.parent, 1))


class TestCommand:
    def test_table_summary_and_json(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["bench", str(LABELS), "--jobs", "1", "--json", str(tmp_path / "out.json")]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "clean alarmed" in "\n".join(lines)
        assert sum(line.startswith(("forensics ", "mean + 6 sd", "median + 6", "2 x median")) for line in lines) == 4
        assert lines[-1].startswith("runs=5 recall=1.000 top1=")
        data = json.loads((tmp_path / "out.json").read_text())
        assert data["schema"] == "forensics-bench/1"
        assert [r["id"] for r in data["rows"]] == ["clean", "demo", "lr-spike", "bad-batch", "nan-batch"]
        assert data["figures"]["clean_runs_with_alarm"] == 0

    def test_json_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["bench", str(LABELS), "--jobs", "1", "--sample", "1", "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)["figures"]["runs"] == 1

    @pytest.mark.parametrize("argv", [["x.json", "--jobs", "0"], ["x.json", "--sample", "-1"], ["x.json"], []])
    def test_wrong_use(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["bench", *argv]) == 2
        assert capsys.readouterr().err


@pytest.fixture(scope="module")
def score() -> ModuleType:
    if not SCORE.exists():
        pytest.skip("the scoring script of the shared labelled runs is not beside this checkout")
    spec = importlib.util.spec_from_file_location("score", SCORE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


CAUSES = st.sampled_from(["right", "also right", "wrong", "worse"])
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(EventKind),
    severity=st.sampled_from(Severity),
    confidence=st.just(0.9),
    signal=st.just("loss"),
    onset_step=st.integers(0, 600),
    peak_step=st.integers(0, 600),
    end_step=st.none() | st.integers(0, 600),
    hypotheses=st.lists(st.builds(Hypothesis, cause=CAUSES, title=st.just(""), score=st.floats(0, 1), role=st.just(Part.TRIGGER)), max_size=4).map(tuple),
)


@st.composite
def truths(draw: st.DrawFn) -> dict[str, object]:
    first = draw(st.integers(0, 500))
    kind = draw(st.sampled_from(["none", "spike", "outlier", "loss_scale_drop", "level_shift", "nan"]))
    clean = kind == "none"
    return {
        "id": "id",
        "run": "run",
        "every": draw(st.sampled_from([1, 5, 10])),
        "event": kind,
        "injected": None if clean else "x",
        "accept": ["right", "also right"],
        "onset": [None, None] if clean else [first, first + draw(st.integers(0, 60))],
        "visible": [] if clean or draw(st.booleans()) else ["loss"],
        "also": [(first + 100, first + 110)] if draw(st.booleans()) else [],
    }


@given(st.lists(st.tuples(truths(), st.lists(EVENTS, max_size=5)), min_size=1, max_size=6))
def test_judges_as_the_script_of_the_labelled_runs_does(score: ModuleType, pairs: list[tuple[dict[str, object], list[Event]]]) -> None:
    for truth, events in pairs:
        (known,) = parse_labels([truth], "labels")
        ours = judge(known, case(*events))
        theirs = score.judge(truth, json.loads(json.dumps(to_json(case(*events)))))
        for key in ("found", "kind", "error", "top1", "top3", "false", "events"):
            assert getattr(ours, key) == theirs[key] or (isinstance(theirs[key], float) and math.isclose(getattr(ours, key), theirs[key])), key
        if ours.found:
            assert list(ours.said) == theirs["said"]


def test_calibration_counts_found_faults_by_score() -> None:
    rows = [
        Row("a", "spike", 1, found=True, top1=True, score=0.9),
        Row("b", "spike", 1, found=True, top1=False, score=0.9),
        Row("c", "spike", 1, found=True, top1=True, score=0.3),
        Row("d", "spike", 0, found=False, top1=False),
        Row("e", "none", 0),
    ]
    found = calibration(rows)
    assert found.brier == pytest.approx((0.01 + 0.81 + 0.49) / 3)
    assert [(b.low, b.count, b.right) for b in found.bins] == [(0.2, 1, 1.0), (0.8, 2, 0.5)]
    assert calibration([]).brier is None


def test_the_table_by_fault_counts_visible_faults_worst_first() -> None:
    from forensics.cli.bench import _by_fault

    entries = [
        {"id": "a", "run": "a", "event": "spike", "injected": "known", "accept": ["x"], "onset": [1, 2], "visible": ["loss"]},
        {"id": "b", "run": "b", "event": "spike", "injected": "missed", "accept": ["x"], "onset": [1, 2], "visible": ["loss"]},
        {"id": "c", "run": "c", "event": "none", "injected": None, "accept": [], "onset": [None, None], "visible": []},
    ]
    rows = [
        Row("a", "spike", 1, found=True, top1=True, top3=True),
        Row("b", "spike", 0, found=False, top1=False, top3=False),
        Row("c", "none", 0),
    ]
    lines = _by_fault(parse_labels(entries, "labels"), rows).splitlines()
    assert [line.split() for line in lines[1:]] == [["missed", "1", "0", "0", "0"], ["known", "1", "1", "1", "1"]]
    assert _by_fault(parse_labels(entries[2:], "labels"), rows[2:]) == "no visible fault in this set\n"
