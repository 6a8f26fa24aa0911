"""A run as it was logged: signals, attempts, configuration, and what could not be read.

Every point keeps the step it was logged with and can be traced to a source file and record.
Nothing is overwritten: steps that were written twice stay twice, in different attempts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from forensics.model.arrays import FloatArray, IntArray, NumArray
from forensics.model.checkpoint import Inspected
from forensics.model.damage import Damage


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """One input file or folder. ``points`` counts scalar values read; ``sha256`` is null where it was not computed."""

    path: str
    format: str
    points: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A stretch of the run written by one process. ``resumed_from`` is the step it continued after, null for the first."""

    first_step: int
    last_step: int
    resumed_from: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Points ``start:stop`` of a signal came from source number ``source``."""

    source: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A signal or fact that is not there, and why. Stands where the thing itself would, so that absence is never silence."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One value per step, ascending. ``index`` points back into the signal the curve was taken from. All shapes (points,)."""

    steps: IntArray
    values: FloatArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A named series in the order it was written.

    ``steps`` int64 (points,) as logged; ``values`` float64 or int64 (points,); ``wall_times`` UTC epoch seconds (points,)
    or None; ``records`` 1-based record or line numbers (points,) in the source, or None; ``starts`` the index of the first
    point of each attempt; ``rank`` 0 for the primary signal of its role.
    """

    name: str
    steps: IntArray
    values: NumArray
    wall_times: FloatArray | None = None
    records: IntArray | None = None
    spans: tuple[Span, ...] = ()
    role: str | None = None
    rank: int = 0
    starts: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return len(self.steps)

    def origin(self, index: int) -> tuple[int, int]:
        """Source number and 1-based record of a point; the position in the source where records were not kept."""
        for span in self.spans:
            if span.start <= index < span.stop:
                record = int(self.records[index]) if self.records is not None else index - span.start + 1
                return span.source, record
        return -1, index + 1

    def curve(self, attempts: int | None = None) -> Curve:
        """The curve as it stood after the first ``attempts`` attempts (all by default).

        A later attempt replaces everything from its first step on, as a resumed run replaces what it repeats. Within one
        attempt the last value of a step counts. Shapes (points,); O(n log n) at worst, O(n) for ordered steps.
        """
        starts = self.starts if attempts is None else self.starts[:attempts]
        stop = len(self) if attempts is None or attempts >= len(self.starts) else self.starts[attempts]
        if len(starts) == 1 and starts[0] == 0 and (len(self) < 2 or bool((self.steps[1:stop] > self.steps[: stop - 1]).all())):
            return Curve(self.steps[:stop], self.values[:stop].astype(np.float64, copy=False), np.arange(stop, dtype=np.int64))
        bounds = [*starts, stop]
        keep: list[IntArray] = []
        limit = np.iinfo(np.int64).max
        for k in range(len(starts) - 1, -1, -1):
            index = np.arange(bounds[k], bounds[k + 1], dtype=np.int64)
            steps = self.steps[index]
            if len(steps) > 1 and (np.diff(steps) <= 0).any():
                index = index[np.argsort(steps, kind="stable")]
                steps = self.steps[index]
                last = np.append(steps[1:] != steps[:-1], True)
                index, steps = index[last], steps[last]
            chosen = steps < limit
            keep.append(index[chosen])
            if chosen.any():
                limit = int(steps[chosen][0])
        index = np.concatenate(keep[::-1]) if keep else np.empty(0, np.int64)
        return Curve(self.steps[index], self.values[index].astype(np.float64), index)


@dataclass(frozen=True, slots=True, eq=False)
class SampleIds:
    """Which samples the steps were taken on, one entry per step and source, in the order written.

    ``steps`` and ``sources`` int64 (entries,); the ids of entry i are ``ids[starts[i] : starts[i + 1]]``, int64 or texts.
    """

    steps: IntArray
    sources: IntArray
    starts: IntArray
    ids: IntArray | tuple[str, ...]

    def at(self, step: int) -> tuple[int | str, ...]:
        """Ids of the samples of a step, all sources together; of one source the last entry counts. () where there are none."""
        last = {int(self.sources[i]): int(i) for i in np.flatnonzero(self.steps == step)}
        found = [item for i in last.values() for item in self.ids[self.starts[i] : self.starts[i + 1]]]
        return tuple(item if isinstance(item, str) else int(item) for item in found)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything that was read of one training run. ``notes`` holds facts about the logging itself (run id, exit code, ...).

    ``attempt_configs`` holds the settings that each attempt logged for itself, one entry per attempt, empty where it logged
    none; () where the log does not tell attempts apart. ``config`` is that of the first.
    """

    path: str
    name: str
    sources: tuple[SourceInfo, ...]
    signals: tuple[Signal, ...]
    attempts: tuple[Attempt, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
    checkpoints: tuple[Inspected, ...] = ()
    attempt_configs: tuple[Mapping[str, object], ...] = ()
    samples: SampleIds | None = None

    def signal(self, role: str) -> Signal | Absent:
        """The primary signal of a role, or why there is none."""
        for signal in self.signals:
            if signal.role == role and signal.rank == 0:
                return signal
        return Absent(role, "no logged name was recognised as this role")

    def all(self, role: str) -> tuple[Signal, ...]:
        """Every signal of a role, primary first."""
        return tuple(sorted((s for s in self.signals if s.role == role), key=lambda s: s.rank))
