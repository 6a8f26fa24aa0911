"""Every event that a person saw in the public logs beside the checkout is found: its kind, its signal, its step; and nothing where nothing is."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from forensics.detectors import find_incidents
from forensics.loading import load
from forensics.model import Event, Severity

CORPUS = Path(__file__).parents[3] / "shared/corpus"
LISTED = CORPUS / "expected.json"
ITEMS: list[dict[str, Any]] = json.loads(LISTED.read_text())["items"] if LISTED.exists() else []

TOLERANCE = 2
"""Logged steps that an onset may be off (product target)."""

SAME = {"spike": {"spike", "slow_spike"}, "divergence": {"divergence", "drift"}}
"""Kinds that differ in how long they last, which excerpts do not show."""

OPEN = {"spike": {"level_shift", "divergence"}}
"""... and what it may be called where the excerpt ends before the loss is back."""


@cache
def findings(path: str) -> tuple[tuple[Event, ...], dict[str, float]]:
    """Every finding, with those that larger incidents absorbed, and the logging interval of each signal."""
    run = load(CORPUS / path)
    members = tuple(m for i in find_incidents(run).incidents for m in i.members)
    every = {}
    for signal in run.signals:
        steps = sorted(set(signal.steps.tolist()))
        gaps = sorted(b - a for a, b in pairwise(steps))
        every[signal.name] = float(gaps[len(gaps) // 2]) if gaps else 1.0
    return members, every


def identity(item: dict[str, Any]) -> str:
    return f"{item['path']}:{item['kind']}@{item.get('onset', item.get('steps', ''))}"


@pytest.mark.skipif(not ITEMS, reason="the public logs are not beside this checkout")
@pytest.mark.parametrize("item", ITEMS, ids=identity)
def test_it_is_as_a_person_saw_it(item: dict[str, Any]) -> None:
    events, every = findings(item["path"])
    own = [e for e in events if e.signal == item["signal"]]
    said = [(e.kind.value, e.severity.value, e.onset_step) for e in own]
    if item["kind"] == "none":
        assert not [e for e in own if e.severity is not Severity.INFO], said
        return
    kinds = SAME.get(item["kind"], {item["kind"]})
    reach = TOLERANCE * max(1.0, every[item["signal"]])
    windows = [(s, s) for s in item["steps"]] if "steps" in item else [tuple(item["onset"])]
    for first, last in windows:
        near = [e for e in own if first - reach <= e.onset_step <= last + reach or e.peak_step == first]
        assert [e for e in near if e.kind.value in kinds or (e.end_step is None and e.kind.value in OPEN.get(item["kind"], ()))], said
        if item["kind"] == "grad_norm_surge":
            assert all(e.severity is Severity.INFO for e in near), said
        elif "peak" in item:
            assert any(abs(e.peak_step - item["peak"]) <= reach for e in near), said
