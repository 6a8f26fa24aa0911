"""Numbers in words, where a bare number misleads. Used by evidence and by reports alike."""

from __future__ import annotations

SMALLEST = 1e-6
"""Chances below this are all the same to a reader, and no model of noise is that exact."""


PLAIN = (1e3, 1e9)
"""Sizes that are written out: 2,610 is read at a glance, 2.61e+03 is not."""


def number(value: float, digits: int = 3) -> str:
    """A number with this many significant digits, written out where it is large."""
    return f"{value:,.0f}" if PLAIN[0] <= abs(value) < PLAIN[1] else f"{value:.{digits}g}"


def chance(p: float) -> str:
    """A probability for a reader: two digits, and no powers of ten beyond what a person can weigh."""
    if p < SMALLEST:
        return "less than one in a million"
    return f"{p:.2g}" if p >= 1e-3 else f"1 in {1 / p:,.0f}"
