from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import (
    Attempt,
    BatchRef,
    Case,
    CaseFormatError,
    Damage,
    Event,
    EventKind,
    Evidence,
    Hypothesis,
    Part,
    Related,
    RunInfo,
    Series,
    Severity,
    SignalInfo,
    SourceInfo,
    Stability,
    from_json,
    to_json,
)


def full_case() -> Case:
    evidence = Evidence("it jumped", "lr", 10, 0.5, "log.csv#11", 2.0)
    hypothesis = Hypothesis("lr_too_high", "LR too high", 0.8, Part.TRIGGER, (evidence,), (evidence,), ("x",), "lower it", "R6", "page")
    event = Event(
        EventKind.NON_FINITE,
        Severity.CRITICAL,
        0.9,
        "loss",
        10,
        12,
        id="E1",
        end_step=None,
        baseline=2.5,
        peak=math.nan,
        height=math.inf,
        batches=(BatchRef(10, 2**60 + 1), BatchRef(11, "shard-7"), BatchRef(12, 1.5)),
        related=(Related("lr", "lr", 9, -1, "jumped"), Related("grad", None, 10, None, "rose")),
        hypotheses=(hypothesis,),
        replay={"free": ["form", 1]},
    )
    info = RunInfo("run", "run", (SourceInfo("log.csv", "csv", 3, "ab"),), 0, 99, (Attempt(0, 50), Attempt(40, 99, 39)), {"lr": 1e-3}, {}, Stability(0.1))
    return Case(
        "0.1.0",
        info,
        (SignalInfo("loss", "loss", 100, 0, 99, 1.0, 3, True),),
        "it broke",
        (event,),
        {"loss": Series((0, 1), (math.nan, -math.inf))},
        damage=(Damage("log.csv", "torn", "1 record"),),
    )


def test_non_finite_numbers_become_words_and_come_back() -> None:
    data = json.loads(json.dumps(to_json(full_case()), allow_nan=False))
    assert data["events"][0]["peak"] == "NaN"
    assert data["events"][0]["height"] == "Infinity"
    assert data["series"]["loss"]["values"] == ["NaN", "-Infinity"]
    back = from_json(Case, data)
    assert math.isnan(back.events[0].peak or 0)
    assert back.events[0].height == math.inf
    assert back.series["loss"].values[1] == -math.inf


def test_everything_survives_the_round_trip() -> None:
    data = to_json(full_case())
    assert to_json(from_json(Case, json.loads(json.dumps(data)))) == data


def test_names_of_the_contract() -> None:
    data = to_json(full_case())
    assert data["schema"] == "forensics/1"
    hypothesis = data["events"][0]["hypotheses"][0]
    assert "for" in hypothesis
    assert "supporting" not in hypothesis
    assert data["events"][0]["severity"] == "critical"
    assert data["events"][0]["batches"][0] == {"step": 10, "batch_id": 2**60 + 1, "samples": []}


def test_large_integers_stay_exact() -> None:
    back = from_json(Case, json.loads(json.dumps(to_json(full_case()))))
    assert back.events[0].batches[0].batch_id == 2**60 + 1
    assert back.events[0].batches[1].batch_id == "shard-7"


def test_unknown_keys_are_ignored_and_defaults_filled() -> None:
    data = {"step": 4, "batch_id": 2, "from_a_later_version": {"x": 1}}
    assert from_json(BatchRef, data) == BatchRef(4, 2)
    assert from_json(Evidence, {"text": "only this"}) == Evidence("only this")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d.pop("verdict"), "case: verdict is missing"),
        (lambda d: d.update(events={}), "case.events: expected a list"),
        (lambda d: d["events"].append(3), r"case.events\[1\]: expected an object"),
        (lambda d: d["events"][0].update(severity="grave"), r"case.events\[0\].severity: 'grave' is not one of info"),
        (lambda d: d["events"][0].update(onset_step="12"), r"case.events\[0\].onset_step: expected int"),
        (lambda d: d["events"][0].update(onset_step=True), r"case.events\[0\].onset_step: expected int"),
        (lambda d: d["events"][0].update(confidence="high"), r"case.events\[0\].confidence: expected float"),
        (lambda d: d["events"][0].update(recovered=1), r"case.events\[0\].recovered: expected bool"),
        (lambda d: d["run"].update(config=[]), "case.run.config: expected an object"),
        (lambda d: d["series"]["loss"].update(values=["nan"]), r"case.series.loss.values\[0\]: expected float"),
    ],
)
def test_wrong_shapes_name_the_place(change: Any, where: str) -> None:
    data = json.loads(json.dumps(to_json(full_case())))
    change(data)
    with pytest.raises(CaseFormatError, match=where):
        from_json(Case, data)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_not_an_object_at_all(data: object) -> None:
    with pytest.raises(CaseFormatError, match="expected an object"):
        from_json(Case, data)


def test_numpy_scalars_become_plain_numbers() -> None:
    assert to_json({"a": np.float64(0.5), "b": np.int64(3), "c": np.float64("nan")}) == {"a": 0.5, "b": 3, "c": "NaN"}


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(_JSON)
def test_any_json_is_read_or_refused_never_a_crash(data: object) -> None:
    with pytest.raises(CaseFormatError):
        from_json(Case, data)


@given(st.floats())
def test_floats_survive(value: float) -> None:
    back = from_json(Series, json.loads(json.dumps(to_json(Series((0,), (value,))), allow_nan=False))).values[0]
    assert back == value or (math.isnan(back) and math.isnan(value))
