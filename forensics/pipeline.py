"""The spine: a path in, a case out. Read this file top to bottom to see what the tool does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from forensics.causes.catalogue import RULES
from forensics.causes.interface import Examination
from forensics.correlate.batches import batches_at
from forensics.correlate.ranking import Examined, Ranking, rank
from forensics.correlate.related import related
from forensics.correlate.view import View
from forensics.detectors import Incident, find_incidents
from forensics.model import Event, NotChecked, Rejected, Run, Severity
from forensics.primitives.curves import Curves


@dataclass(frozen=True, slots=True)
class Explained:
    """Events with their hypotheses, and what was rejected on the way."""

    events: tuple[Event, ...]
    rejected: tuple[Rejected, ...]
    not_checked: tuple[NotChecked, ...] = ()


def explain(run: Run, incidents: list[Incident]) -> Explained:
    """Number the incidents, find what moved with them, and rank their causes."""
    curves: dict[int | None, Curves] = {}
    numbered = tuple(replace(i, event=replace(i.event, id=f"E{n}")) for n, i in enumerate(incidents, 1))
    events: list[Event] = []
    rejected: list[Rejected] = []
    for incident in numbered:
        shared = curves.setdefault(incident.attempts, Curves(run, incident.attempts))
        view = View(run, shared, incident, numbered)
        ranking = _rank(view) if incident.event.severity is not Severity.INFO else Ranking((), (), False)
        event = incident.event
        events.append(
            replace(
                event,
                related=related(view),
                batches=batches_at(run, event.onset_step, event.peak_step, incident.attempts),
                hypotheses=ranking.hypotheses,
                undetermined=ranking.undetermined and incident.event.severity is not Severity.INFO,
            )
        )
        rejected += ranking.rejected
    return Explained(tuple(events), tuple(rejected))


def _rank(view: View) -> Ranking:
    examined = []
    for rule in RULES:
        found: Examination = rule.examine(view)
        info = rule.INFO
        examined.append(
            Examined(
                info.id,
                info.title,
                info.part,
                tuple(found.supporting),
                tuple(found.against),
                tuple(found.missing),
                found.remedy,
                info.replay,
                "",
                found.excluded,
            )
        )
    return rank(examined, view.event.kind, view.event.id)
