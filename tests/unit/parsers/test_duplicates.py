"""The same curve in two formats: compared, not counted twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from forensics.loading import load
from forensics.pipeline import build_case
from forensics.vocabulary import Role

STEPS = range(300)


def loss(step: int) -> float:
    return 2.0 + 1.0 / (step + 1) + 0.01 * ((step * 7919) % 101) / 101


def folder(place: Path, *, changed: dict[int, float] | None = None, decimals: int | None = None) -> Path:
    values = {s: loss(s) for s in STEPS}
    (place / "log.jsonl").write_text("".join(json.dumps({"step": s, "loss": v}) + "\n" for s, v in values.items()))
    values |= changed or {}
    cells = {s: repr(v) if decimals is None else f"{v:.{decimals}f}" for s, v in values.items()}
    (place / "log.csv").write_text("step,loss\n" + "".join(f"{s},{v}\n" for s, v in cells.items()))
    return place


def test_a_point_that_two_records_tell_differently_is_named(tmp_path: Path) -> None:
    run = load(folder(tmp_path, changed={120: 9.5, 200: float("nan")}))
    (said,) = run.notes["copies_differ"]  # type: ignore[misc]
    assert "differs at 2 of 300 shared steps, first at step 120 (9.5 there" in said
    case = build_case(run)
    assert any(n.what == "which of two records is right" and "step 120" in n.why for n in case.not_checked)


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    run = load(folder(tmp_path, decimals=3))
    assert run.notes["copies_agree"] == ["loss: csv agrees at all 300 shared steps"]
    assert "copies_differ" not in run.notes


def test_another_curve_of_the_same_name_is_no_copy(tmp_path: Path) -> None:
    run = load(folder(tmp_path, changed={s: loss(s) * 0.9 for s in STEPS}))
    assert not {"copies_agree", "copies_differ"} & set(run.notes)


def test_points_are_not_counted_twice(tmp_path: Path) -> None:
    run = load(folder(tmp_path))
    primary = run.signal(Role.LOSS)
    assert np.array_equal(primary.steps, np.arange(300))  # type: ignore[union-attr]
    assert len(run.attempts) == 1


def test_a_copy_that_moved_too_is_no_evidence(tmp_path: Path) -> None:
    spike = {s: loss(s) + 4.0 for s in (200, 201, 202)}
    folder(tmp_path)
    for name in ("log.jsonl", "log.csv"):
        text = (tmp_path / name).read_text()
        for s, value in spike.items():
            text = text.replace(repr(loss(s)), repr(value))
        (tmp_path / name).write_text(text)
    case = build_case(load(tmp_path))
    assert any(e.signal == "loss" and 198 <= e.onset_step <= 202 for e in case.events)
    assert not any(r.signal.endswith("@csv") for e in case.events for r in e.related)
