"""What a cause is: a module with INFO and ``examine``. Its docstring is its manual page.

``examine`` looks at one incident and says what speaks for the cause, what against, and what is missing. It never decides:
ranking does, with the weights of ``forensics.correlate.weights``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from forensics.correlate import weights
from forensics.correlate.checkpoint_evidence import CheckpointFact
from forensics.correlate.view import View
from forensics.model import EventKind, Evidence, Part


@dataclass(frozen=True, slots=True)
class CauseInfo:
    """``id`` from the catalogue; ``needs`` the roles without which the rule cannot speak; ``replay`` the deciding experiments.

    ``info`` are the kinds of events that the rule answers even where they are only info; alarms are put to every rule.
    """

    id: str
    title: str
    family: str
    part: Part
    needs: tuple[str, ...] = ()
    replay: str = ""
    since: str = "0.1.0"
    info: tuple[EventKind, ...] = ()


@dataclass(slots=True)
class Examination:
    """What one cause says about one incident. ``excluded`` is a fact that rules it out; ``relevant`` False: not a candidate."""

    view: View
    supporting: list[Evidence] = field(default_factory=list)
    against: list[Evidence] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    remedy: str = ""
    excluded: str | None = None

    def supports(self, weight: float, text: str, role: str | None = None, step: int | None = None, value: float | str | None = None) -> None:
        """Add evidence for the cause."""
        self.supporting.append(self.view.evidence(text, role, step, value, weight))

    def contradicts(self, weight: float, text: str, role: str | None = None, step: int | None = None, value: float | str | None = None) -> None:
        """Add evidence against the cause; ``weight`` is negative."""
        self.against.append(self.view.evidence(text, role, step, value, weight))

    def shows(self, weight: float, fact: CheckpointFact) -> None:
        """Add what a checkpoint shows: for the cause, or against it where ``weight`` is negative."""
        evidence = Evidence(fact.text, None, fact.step, fact.value, fact.source, weight)
        (self.supporting if weight > 0 else self.against).append(evidence)

    def set_for(self, weight: float, text: str, setting: str) -> None:
        """Add evidence for the cause that is a setting of the run, by the name in ``Settings``."""
        self.supporting.append(self.view.configured(text, setting, weight))

    def set_against(self, weight: float, text: str, setting: str) -> None:
        """Add evidence against the cause that is a setting of the run; ``weight`` is negative."""
        self.against.append(self.view.configured(text, setting, weight))

    def exclude(self, reason: str) -> Examination:
        """Rule the cause out."""
        self.excluded = reason
        return self

    @property
    def log_odds(self) -> float:
        """Sum of the evidence."""
        return sum(e.weight for e in self.supporting) + sum(e.weight for e in self.against)


class Cause(Protocol):
    """The shape of a cause module."""

    INFO: CauseInfo

    def examine(self, view: View) -> Examination:
        """Examine one incident."""


__all__ = ["Cause", "CauseInfo", "Examination", "View", "weights"]
