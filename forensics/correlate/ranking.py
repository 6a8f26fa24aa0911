"""From examinations to a ranked list: scores, the undetermined verdict, and what was rejected and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.correlate import weights
from forensics.model import EventKind, Evidence, Hypothesis, Part, Rejected


@dataclass(frozen=True, slots=True)
class Examined:
    """One cause's examination, ready for ranking."""

    cause: str
    title: str
    part: Part
    supporting: tuple[Evidence, ...]
    against: tuple[Evidence, ...]
    missing: tuple[str, ...]
    remedy: str
    replay: str
    manual: str
    excluded: str | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hypotheses, best first; what was rejected; whether the best one is good enough to be an answer."""

    hypotheses: tuple[Hypothesis, ...]
    rejected: tuple[Rejected, ...]
    undetermined: bool


def rank(examined: Sequence[Examined], kind: EventKind, event: str) -> Ranking:
    """Rank the causes of one event.

    Scores are a softmax over the causes and the possibility that it was none of them; a cause needs at least one piece of
    evidence for it to be ranked. A trigger outranks a susceptibility of equal score: it says why now.
    """
    rejected: list[Rejected] = []
    standing: list[tuple[float, Examined]] = []
    for item in examined:
        if item.excluded is not None:
            rejected.append(Rejected(item.cause, event, item.excluded))
        elif item.supporting:
            evidence = sum(e.weight for e in item.supporting) + sum(e.weight for e in item.against)
            standing.append((weights.SHARPNESS * (weights.prior(item.cause, kind) + evidence), item))
    total = math.exp(weights.SHARPNESS * weights.UNKNOWN_CAUSE) + sum(math.exp(odds) for odds, _ in standing)
    ranked = sorted(((math.exp(odds) / total, item) for odds, item in standing), key=lambda r: (-r[0], r[1].part is not Part.TRIGGER, r[1].cause))
    hypotheses = []
    for score, item in ranked:
        if score < weights.SHOWN and not _helps(item, ranked[0][1]):
            rejected.append(Rejected(item.cause, event, _weak(item)))
        else:
            hypotheses.append(_hypothesis(score, item))
    best = hypotheses[0].score if hypotheses else 0.0
    second = hypotheses[1].score if len(hypotheses) > 1 else 0.0
    undetermined = best < weights.UNDETERMINED_TOP or best - second < weights.UNDETERMINED_MARGIN
    return Ranking(tuple(hypotheses), tuple(rejected), undetermined)


def _helps(item: Examined, best: Examined) -> bool:
    """A reason for the fragility, or for the size, that stands on its own evidence is no rival of a trigger and not rejected by it."""
    evidence = sum(e.weight for e in item.supporting)
    return best.part is Part.TRIGGER and item.part is not Part.TRIGGER and not item.against and evidence >= weights.REQUIRED


def _hypothesis(score: float, item: Examined) -> Hypothesis:
    return Hypothesis(
        cause=item.cause,
        title=item.title,
        score=round(score, 4),
        role=item.part,
        supporting=item.supporting,
        against=item.against,
        missing=item.missing,
        remedy=item.remedy,
        replay=item.replay,
        manual=item.manual,
    )


def _weak(item: Examined) -> str:
    if item.against:
        return f"{item.against[0].text}; other causes explain the event better"
    return f"fits ({item.supporting[0].text}), but other causes explain the event far better"
