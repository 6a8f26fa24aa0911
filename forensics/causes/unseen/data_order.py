"""Causes of the family data that have no rule: order, length and repetition of samples."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
)
