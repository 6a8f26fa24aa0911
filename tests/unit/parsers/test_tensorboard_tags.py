from __future__ import annotations

import numpy as np
import pytest

from forensics.parsers import tensorboard_tags
from forensics.parsers.tensorboard_tags import OVERFLOW, Tags


def matrix(tags: list[bytes]) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Rows with ten other bytes before the tag and three after."""
    return np.array([np.frombuffer(b"0123456789" + tag + b"xyz", np.uint8) for tag in tags])


def named(known: Tags, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[bytes]:
    return [known.names[n][0] for n in numbers.tolist()]


def test_tags_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard_tags, "_hash", lambda columns: np.zeros(len(columns[0]), np.uint64))
    known = Tags()
    tags = [b"loss/train", b"loss/valid", b"grad/norms"] * 5
    for _ in range(2):
        assert named(known, known.numbers(matrix(tags), 10, 20, is_int=False)) == tags
    assert len(known.names) == 3


def test_tags_past_the_limit_share_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard_tags, "MAX_TAGS", 2)
    known = Tags()
    found = known.numbers(matrix([b"aa", b"bb", b"cc", b"dd", b"aa"]), 10, 12, is_int=False).tolist()
    assert sorted(found)[-2:] == [OVERFLOW, OVERFLOW]
    assert len(known.names) == 2
    again = known.numbers(matrix([b"aa", b"bb", b"cc", b"dd", b"aa"]), 10, 12, is_int=False).tolist()
    assert again == found


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 16, 17, 40])
def test_every_tag_length(size: int) -> None:
    rng = np.random.default_rng(size)
    some = [rng.bytes(size) for _ in range(200)]
    known = Tags()
    for _ in range(3):
        tags = [some[i] for i in rng.integers(0, 200, 3000)]
        assert named(known, known.numbers(matrix(tags), 10, 10 + size, is_int=False)) == tags


def test_integer_and_float_values_of_a_tag_are_two() -> None:
    known = Tags()
    assert known.number(b"a", is_int=False) != known.number(b"a", is_int=True)
