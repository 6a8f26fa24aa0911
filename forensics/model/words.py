"""Numbers in words, where a bare number misleads. Used by evidence and by reports alike."""

from __future__ import annotations

SMALLEST = 1e-6
"""Chances below this are all the same to a reader, and no model of noise is that exact."""


def chance(p: float) -> str:
    """A probability for a reader: two digits, and no powers of ten beyond what a person can weigh."""
    if p < SMALLEST:
        return "less than one in a million"
    return f"{p:.2g}" if p >= 1e-3 else f"1 in {1 / p:,.0f}"
