"""Everything that is kept of one ``.wandb`` file while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from forensics.parsers import wandb_wire as wire
from forensics.parsers.wandb_framing import Batch, Gap
from forensics.parsers.wandb_history import History
from forensics.parsers.wandb_routes import route


@dataclass(frozen=True, slots=True)
class Place:
    """A damaged place: the gap, and how many history rows were read before it."""

    rows: int
    gap: Gap


@dataclass(frozen=True, slots=True)
class Sample:
    """System metrics, and how many history rows were read before them."""

    rows: int
    stats: wire.Stats


@dataclass(slots=True)
class Log:
    """The content of a file, record by record. ``unreadable`` counts records with a good checksum that are no message."""

    history: History = field(default_factory=History)
    runs: list[wire.RunFacts] = field(default_factory=list)
    changes: list[wire.ConfigChange] = field(default_factory=list)
    metrics: list[wire.Metric] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    exit_code: int | None = None
    writer: str = ""
    records: int = 0
    unreadable: int = 0

    def add(self, batch: Batch) -> None:
        """Take the records of one batch."""
        routes = route(batch)
        before = self.history.rows
        for gap in batch.gaps:
            self.places.append(Place(before + int(np.searchsorted(routes.history, gap.before)), gap))
        for i in routes.others.tolist():
            rows = before + int(np.searchsorted(routes.history, i))
            record = batch.data[batch.starts[i] : batch.starts[i] + batch.lengths[i]].tobytes()
            for number, value in wire.known_fields(record):
                if isinstance(value, bytes):
                    self._add_record(number, value, rows)
        self.records += len(batch.starts)
        self.unreadable += routes.unreadable
        self.history.add(batch.data, routes.begins, routes.ends)

    def _add_record(self, number: int, message: bytes, rows: int) -> None:
        if number == wire.RUN:
            self.runs.append(wire.run_facts(message))
            self.changes.extend(self.runs[-1].config)
        elif number == wire.CONFIG:
            self.changes.extend(wire.config_changes(message))
        elif number == wire.METRIC:
            self.metrics.append(wire.metric(message))
        elif number == wire.STATS:
            self.samples.append(Sample(rows, wire.stats(message)))
        elif number == wire.EXIT:
            self.exit_code = wire.exit_code(message)
        elif number == wire.HEADER:
            self.writer = wire.writer_version(message)
