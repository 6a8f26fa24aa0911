"""Every event file of the shared fault laboratory: as many points per signal as were logged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.parsers import tensorboard
from forensics.parsers.interface import Source
from forensics.parsers.sink import Collector

LAB = Path(__file__).parents[3] / "shared" / "faultlab"
FILES = sorted(LAB.glob("runs/*/*tfevents*"))


@pytest.mark.skipif(not FILES, reason="../shared/faultlab is not here")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_counts(path: Path) -> None:
    counts = json.loads((LAB / "counts.json").read_text())
    source = Source.of(path)
    claim = tensorboard.sniff(source)
    assert claim is not None
    collector = Collector()
    tensorboard.parse(source, collector.sink(str(path), tensorboard.NAME), claim.runs[0])
    assert {signal.name: len(signal) for signal in collector.signals()} == counts[f"runs/{path.parent.name}"]
    assert collector.damage == []
