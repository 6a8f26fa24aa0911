"""Every run of the shared labelled set reads with exactly the counts an independent reader found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.parsers.discovery import discover
from forensics.parsers.reading import read

LAB = Path(__file__).parents[3] / "shared/faultlab"
COUNTS: dict[str, dict[str, int]] = json.loads((LAB / "counts.json").read_text()) if (LAB / "counts.json").exists() else {}


@pytest.mark.skipif(not COUNTS, reason="the shared labelled runs are not beside this checkout")
@pytest.mark.parametrize("name", sorted(COUNTS) or ["none"])
def test_counts(name: str) -> None:
    found = discover(LAB / name)
    assert len(found.runs) == 1
    run = read(found.runs[0])
    assert {s.name: len(s) for s in run.signals} == COUNTS[name]
    assert not run.damage
    assert run.signals
    assert len(run.attempts) >= 1
