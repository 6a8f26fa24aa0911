"""A bounded run of the fuzz target; the long one is ``python -m tests.fuzz.run``."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.run import fuzz
from tests.fuzz.samples import samples

CASES = 2_000
SECONDS = 20.0


def test_whole_samples_are_whole(tmp_path: Path) -> None:
    for sample in samples(tmp_path):
        if sample.whole is not None:
            assert sample.whole((sample.folder / sample.file).read_bytes()), sample.file


def test_damaged_logs(tmp_path: Path) -> None:
    done, failures, _ = fuzz(range(CASES), seed=7, seconds=SECONDS, folder=tmp_path)
    assert done > 0
    assert failures == [], "\n".join(map(str, failures[:5]))
