"""What could not be read. In a file of its own: readers that need no arrays load no numpy for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in the input that could not be read. ``lost`` says how much, in records, steps or bytes."""

    path: str
    what: str
    lost: str
