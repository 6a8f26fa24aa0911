"""What every incident cost: the rise of the loss, the time until it was back, the steps of training that were lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forensics.detectors.incidents import Incident
from forensics.model import Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared
from forensics.primitives.setback import Setback, setback
from forensics.vocabulary import Role

ON_LOSS = frozenset({EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE})
"""Kinds whose extent is that of a rise of the loss."""


def with_cost(incident: Incident, curves: Curves) -> Incident:
    """The incident with ``recovery_steps``, ``height_nats``, ``area`` and ``lost_steps`` of its event, as far as they mean something."""
    event, loss = incident.event, curves.get(Role.LOSS)
    if event.kind is EventKind.RESTART:
        return replace(incident, event=replace(event, lost_steps=_repeated(event)))
    recovery = event.end_step - event.onset_step if event.recovered and event.end_step is not None else None
    event = replace(event, recovery_steps=recovery)
    if loss is not None:
        event = _with_loss(event, [m for m in incident.members if m.signal == loss.name], loss, curves.last_step)
    return replace(incident, event=event)


def _repeated(event: Event) -> float | None:
    """Steps that were done twice."""
    known = event.end_step is not None and event.severity is not Severity.INFO
    return float(event.end_step - event.onset_step + 1) if known and event.end_step is not None else None


def _with_loss(event: Event, members: list[Event], loss: Prepared, last_step: int) -> Event:
    costs: list[Setback] = []
    spans = [(float(m.onset_step), _last(m, last_step + 1)) for m in members if m.kind is EventKind.NON_FINITE]
    for member in members:
        if member.kind in ON_LOSS:
            cost = setback(loss, loss.at(member.onset_step), None if member.end_step is None else loss.at(member.end_step))
            if cost is not None:
                costs.append(cost)
                spans.append((_last(member, last_step) - cost.steps, _last(member, last_step)))
    if not spans:
        return event
    height, area = (max(c.height for c in costs), sum(c.area for c in costs)) if costs else (None, None)
    return replace(event, height_nats=height, area=area, lost_steps=union(spans))


def _last(event: Event, last_step: int) -> float:
    return float(last_step if event.end_step is None else event.end_step)


def union(spans: Sequence[tuple[float, float]]) -> float:
    """Length of what intervals cover together."""
    total, reached = 0.0, float("-inf")
    for low, high in sorted(spans):
        total += max(0.0, high - max(low, reached))
        reached = max(reached, high)
    return total
