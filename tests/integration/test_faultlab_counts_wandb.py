"""Every W&B run of the shared fault laboratory: as many points per signal as were logged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.parsers import wandb
from forensics.parsers.interface import Source
from forensics.parsers.sink import Collector

LAB = Path(__file__).parents[3] / "shared" / "faultlab"
FILES = sorted(path for path in LAB.glob("runs/*/wandb/*run-*/*.wandb") if not path.parent.is_symlink())


@pytest.mark.skipif(not FILES, reason="../shared/faultlab is not here")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parts[-4])
def test_counts(path: Path) -> None:
    counts = json.loads((LAB / "counts.json").read_text())
    source = Source.of(path)
    claim = wandb.sniff(source)
    assert claim is not None
    collector = Collector()
    wandb.parse(source, collector.sink(str(path), wandb.NAME), claim.runs[0])
    assert {s.name: len(s) for s in collector.signals() if not s.name.startswith("system.")} == counts[f"runs/{path.parts[-4]}"]
    assert collector.damage == []
