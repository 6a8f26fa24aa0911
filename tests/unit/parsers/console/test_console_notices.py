"""Messages about the loss scale, and of processes that end."""

from __future__ import annotations

import pytest

from forensics.parsers.console.emission import _of_one_process
from forensics.parsers.console.notices import endings, notices


@pytest.mark.parametrize(
    ("line", "scale", "rank", "skipped"),
    [
        ("[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 4294967296, reducing to 2147483648", 2147483648.0, 3, True),
        ("OVERFLOW! Skipping step. Attempted loss scale: 65536.0, reducing to 32768.0", 32768.0, None, True),
        ("[Rank 0] Overflow detected. Skipping step. Attempted loss scale: 32768.0, reducing to 16384.0", 16384.0, 0, True),
        ("fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 8192.0, reducing to 4096.0", 4096.0, None, True),
        ("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 131072, but hysteresis is 2. Reducing hysteresis to 1", None, 0, True),
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0", 32768.0, None, True),
        ("NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0", 64.0, None, True),
        ("Increasing dynamic loss scale from 4096.0 to 8192.0", 8192.0, None, False),
    ],
)
def test_spellings(line: str, scale: float | None, rank: int | None, skipped: bool) -> None:
    (found,) = notices(b"before\n" + line.encode() + b"\nafter\n")
    assert (found.scale, found.rank, found.skipped) == (scale, rank, skipped)


@pytest.mark.parametrize("line", ["loss scale: 65536.0 |", "Attempted loss scale: , reducing to", "gradient overflow is bad", "reducing to 1..2..3"])
def test_near_misses(line: str) -> None:
    assert list(notices(line.encode())) == []


def test_a_number_with_two_points_is_none() -> None:
    (found,) = notices(b"Attempted loss scale: 4.0, reducing to 2.0.1.")
    assert found.scale is None


def test_one_process_speaks_for_all() -> None:
    text = "".join(f"Rank {r} Skipping step. Attempted loss scale: {s}, reducing to {s // 2}\n" for s in (8, 4) for r in (2, 1))
    assert [n.scale for n in _of_one_process(list(notices(text.encode())))] == [4.0, 2.0]
    unnamed = "fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 8.0, reducing to 4.0\n" * 4
    assert [n.scale for n in _of_one_process(list(notices(unnamed.encode())))] == [4.0]
    floor = "Skipping step. Attempted loss scale: 1.0, reducing to 1.0\n" * 3
    assert len(_of_one_process(list(notices(floor.encode())))) == 3


def test_endings() -> None:
    text = b"ok\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nslurmstepd: error: *** JOB 1 CANCELLED ***\n"
    assert [message for _, message in endings(text)] == ["CUDA out of memory. Tried to allocate 2 GiB", "slurmstepd: error: *** JOB 1 CANCELLED ***"]
    assert list(endings(b"nothing of that kind\n")) == []
