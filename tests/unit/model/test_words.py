"""Chances in words: nothing, next to nothing, small, ordinary."""

from __future__ import annotations

import pytest

from forensics.model.words import chance, number


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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-2610.4, "-2,610"),
        (3.14159, "3.14"),
        (0.000123456, "0.000123"),
        (1e12, "1e+12"),
        (999_999.0, "999,999"),
    ],
)
def test_numbers(value: float, words: str) -> None:
    assert number(value) == words
