"""One incident, one event: findings of several signals that belong together are joined.

Findings join when the next begins within a short time of the onset of the first, or before the first is over. What is only
info never starts an incident with a warning in it; it is told as part of it or on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forensics.model import Event, EventKind, Severity

NEAR_POINTS = 12
"""Logged points between two onsets of one incident: published leads of gradients over the loss are 1 to 10."""

LONG_SHARE = 0.04
"""... or this share of the run, for changes that work slowly."""

_RANK = {
    EventKind.NON_FINITE: 0,
    EventKind.DIVERGENCE: 1,
    EventKind.LEVEL_SHIFT: 2,
    EventKind.SLOW_SPIKE: 3,
    EventKind.SPIKE: 4,
    EventKind.DROP: 5,
    EventKind.DRIFT: 5,
    EventKind.OSCILLATION: 6,
    EventKind.NOISE_CHANGE: 7,
    EventKind.LOSS_SCALE_COLLAPSE: 8,
    EventKind.LOSS_SCALE_DROP: 9,
    EventKind.BATCH_SIZE_CHANGE: 10,
    EventKind.LR_ANOMALY: 11,
    EventKind.RESTART: 12,
    EventKind.LOGIT_GROWTH: 13,
    EventKind.GRAD_NORM_SURGE: 14,
}

_SEVERITY = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}

_LASTING = frozenset({EventKind.DIVERGENCE, EventKind.NON_FINITE})
"""Kinds that swallow everything after them while they last."""

_ALONE = frozenset({EventKind.UNFINISHED, EventKind.OVERFITTING, EventKind.THROUGHPUT_CHANGE, EventKind.PLATEAU})
"""Kinds that are told on their own: they say nothing about the moment."""


_BLURRED = frozenset({EventKind.NOISE_CHANGE, EventKind.OSCILLATION})
"""Kinds whose onset is only known to some points; anything sharper in the incident places it."""


@dataclass(frozen=True, slots=True)
class Incident:
    """``event`` stands for the whole; ``members`` are the findings it was made of, by onset.

    ``attempts`` is the number of attempts the run had made when it happened, None for the run as it ended.
    """

    event: Event
    members: tuple[Event, ...]
    attempts: int | None = None

    def member(self, *kinds: EventKind) -> Event | None:
        """The first finding of one of these kinds."""
        return next((m for m in self.members if m.kind in kinds), None)


def group(findings: Sequence[Event], every: float, length: int, loss: str | None = None) -> list[Incident]:
    """Join findings to incidents, in order of onset.

    ``every`` is the logging interval and ``length`` the run, in steps; ``loss`` the name of the primary loss.
    """
    near = NEAR_POINTS * max(every, 1.0)
    far = max(near, LONG_SHARE * length)
    alone = [Incident(f, (f,)) for f in findings if f.kind in _ALONE]
    alarms = sorted((f for f in findings if f.severity is not Severity.INFO and f.kind not in _ALONE), key=_order)
    groups: list[list[Event]] = []
    for finding in alarms:
        home = next((g for g in groups if _belongs(finding, g, near, far)), None)
        if home is None:
            groups.append([finding])
        else:
            home.append(finding)
    infos = sorted((f for f in findings if f.severity is Severity.INFO and f.kind not in _ALONE), key=_order)
    for finding in infos:
        home = next((g for g in groups if _accompanies(finding, g, near)), None)
        if home is not None:
            home.append(finding)
        else:
            alone.append(Incident(finding, (finding,)))
    joined = [_merge(g, loss) for g in groups] + alone
    return sorted(joined, key=lambda i: (i.event.onset_step, _RANK.get(i.event.kind, 99)))


def _order(event: Event) -> tuple[int, int]:
    return event.onset_step, _RANK.get(event.kind, 99)


def _belongs(finding: Event, members: list[Event], near: float, far: float) -> bool:
    for member in members:
        distance = finding.onset_step - member.onset_step
        if abs(distance) <= near:
            return True
        slow = member.kind in {EventKind.LR_ANOMALY, EventKind.BATCH_SIZE_CHANGE, EventKind.LOSS_SCALE_COLLAPSE, EventKind.GRAD_NORM_SURGE}
        if slow and 0 <= distance <= far and finding.kind is not member.kind:
            return True
        if member.kind in _LASTING and member.end_step is None and distance >= 0:
            return True
        if member.kind is not EventKind.RESTART and member.end_step is not None and member.onset_step <= finding.onset_step <= member.end_step + near / 2:
            return True
        if member.end_step is None and member.kind is EventKind.LEVEL_SHIFT and 0 <= distance <= far:
            return True
    return False


def _accompanies(finding: Event, members: list[Event], near: float) -> bool:
    onset = min(m.onset_step for m in members)
    end = max(m.end_step if m.end_step is not None else m.peak_step for m in members)
    return onset - near <= finding.onset_step <= max(end, onset + near)


def _weight(event: Event, loss: str | None) -> int:
    """Which finding names the incident: what happened to the loss first. A gradient that overflowed is not yet a loss that did."""
    if event.kind is EventKind.NON_FINITE and event.signal != loss:
        return _RANK[EventKind.LOSS_SCALE_DROP] + 1
    return _RANK.get(event.kind, 99)


def _merge(members: list[Event], loss: str | None) -> Incident:
    ordered = tuple(sorted(members, key=_order))
    alarms = [m for m in ordered if m.severity is not Severity.INFO]
    main = min(alarms, key=lambda m: (_weight(m, loss), m.onset_step))
    onset = min(m.onset_step for m in [a for a in alarms if a.kind not in _BLURRED] or alarms)
    leads = [m.onset_step for m in ordered if m.severity is Severity.INFO and m.kind is not EventKind.GRAD_NORM_SURGE]
    worst = max(alarms, key=lambda m: _SEVERITY[m.severity]).severity
    ends = [m.end_step for m in alarms]
    end = None if any(e is None for e in ends) else max(e for e in ends if e is not None)
    event = replace(
        main,
        severity=worst,
        onset_step=min([onset, *[s for s in leads if onset - 3 <= s < onset]]),
        end_step=end if main.kind in _LASTING or main.end_step is None else main.end_step,
        confidence=max(m.confidence for m in alarms),
    )
    return Incident(event, ordered)
