"""Every fact leads to its file and record: the named record of the file holds the value that is cited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forensics.model import Case, Evidence
from forensics.pipeline import analyze

LABELLED = sorted(p for p in (Path(__file__).parents[2] / "fixtures/labelled").iterdir() if p.is_dir())


def facts(case: Case) -> list[Evidence]:
    return [e for event in case.events for h in event.hypotheses for e in (*h.supporting, *h.against)]


@pytest.mark.parametrize("folder", LABELLED, ids=lambda p: p.name)
def test_facts_of_bundled_runs_have_a_record(folder: Path) -> None:
    for fact in facts(analyze(folder)):
        if fact.value is None and fact.signal is None:
            continue  # something that is absent has no record
        assert fact.source is not None, fact.text
        path, _, record = fact.source.rpartition("#")
        assert Path(path).exists(), fact.source
        assert record, fact.source
        assert fact.signal is None or record.isdecimal(), fact.source


def run(folder: Path, **config: object) -> Path:
    rng = np.random.default_rng(0)
    t = np.arange(1200)
    away = np.where(t >= 700, np.exp(-np.maximum(t - 700, 0) / 12), 0.0)
    loss = (2 + np.exp(-t / 300)) * np.exp(0.02 * rng.normal(size=1200)) * (1 + 0.5 * away)
    grad = 0.5 * np.exp(0.1 * rng.normal(size=1200)) * (1 + 4 * away)
    rows = (f"{i},{a:.6f},{b:.6f},0.001" for i, (a, b) in enumerate(zip(loss, grad, strict=True)))
    (folder / "metrics.csv").write_text("step,loss,grad_norm,lr\n" + "\n".join(rows) + "\n")
    (folder / "config.json").write_text("{" + ", ".join(f'"{k}": {v}' for k, v in config.items()) + "}")
    return folder


def test_the_record_holds_the_value(tmp_path: Path) -> None:
    lines = (run(tmp_path, beta2=0.999) / "metrics.csv").read_text().splitlines()
    head = lines[0].split(",")
    cited = [e for e in facts(analyze(tmp_path)) if e.signal in head and e.source is not None and isinstance(e.value, float)]
    assert cited
    for fact in cited:
        row = lines[int(str(fact.source).rpartition("#")[2]) - 1].split(",")
        assert int(row[0]) == fact.step
        assert float(row[head.index(str(fact.signal))]) == pytest.approx(fact.value), fact.text


def test_a_setting_leads_to_its_key(tmp_path: Path) -> None:
    found = [e for e in facts(analyze(run(tmp_path, adam_beta2=0.999))) if e.text.startswith("beta2")]
    assert found
    assert str(found[0].source).endswith("config.json#adam_beta2")
    assert found[0].value == 0.999
