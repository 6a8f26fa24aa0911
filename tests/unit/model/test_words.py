"""Chances in words: nothing, next to nothing, small, ordinary."""

from __future__ import annotations

import pytest

from forensics.model.words import chance


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0, "less than one in a million"),
        (1e-300, "less than one in a million"),
        (1e-6, "1 in 1,000,000"),
        (0.00098, "1 in 1,020"),
        (0.017, "0.017"),
        (1.0, "1"),
    ],
)
def test_chances(p: float, words: str) -> None:
    assert chance(p) == words
