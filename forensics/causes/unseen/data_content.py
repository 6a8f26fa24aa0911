"""Causes of the family data that have no rule: wrong labels, tokens and inputs."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
)
