"""Every rule has a test file of its own, with a run that it explains, one that it does not, and a need that is missing."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from forensics.causes.catalogue import RULES

HERE = Path(__file__).parent

POSITIVE = re.compile(r"assert (all\()?holds\(|\.supporting\b")
NEGATIVE = re.compile(r"\.excluded|assert silent\(|not holds\(|\.against\b")
MISSING = re.compile(r"\.missing\b")


@pytest.mark.parametrize("rule", RULES, ids=lambda r: str(r.INFO.id))
def test_three_kinds_of_tests(rule: ModuleType) -> None:
    path = HERE / f"test_{rule.INFO.id}.py"
    assert path.exists(), f"no test of {rule.INFO.id}"
    text = path.read_text(encoding="utf-8")
    for kind, pattern in (("a run that it explains", POSITIVE), ("a near miss", NEGATIVE), ("a missing need", MISSING)):
        assert pattern.search(text), f"{path.name} tests no {kind}"
