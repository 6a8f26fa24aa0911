"""Where parsers put what they read: one Sink per source, one Collector per run.

The collector joins the pieces of a signal that several sources wrote, in the order of the sources, and keeps for every
point which source and which record it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forensics.model import Damage, FloatArray, IntArray, NumArray, SampleIds, Signal, SourceInfo, Span
from forensics.parsers.interface import Progress

_T = TypeVar("_T", np.float64, np.int64)

MAX_SIGNALS = 50_000
"""More names than this in one run is a parsing error or an attack, not a training log."""

TEXT_LIMIT = 400
"""Characters kept of one text value: enough to recognise it, bounded against hostile logs."""


ADDED = frozenset({"rows_without_step", "header_repeated", "repeated_points", "lines_not_used", "null_values", "tensorboard_skipped", "messages"})
"""Notes that count or list something in one file."""

ENDINGS = frozenset({"finished", "exit_code", "status", "end_time"})
"""Notes that say how a process ended: sources of one format are read in the order they were begun, so the last one counts."""

MOST_LISTED = 100
"""Entries kept of a list over all sources."""


@dataclass(slots=True)
class _Piece:
    source: int
    steps: IntArray
    values: NumArray
    wall_times: FloatArray | None
    records: IntArray | None


@dataclass(slots=True)
class Collector:
    """Gathers everything read of one run."""

    sources: list[SourceInfo] = field(default_factory=list)
    config: dict[str, object] = field(default_factory=dict)
    configs: dict[int, dict[str, object]] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)
    note_formats: dict[str, str] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    progress: Progress | None = None
    _pieces: dict[str, list[_Piece]] = field(default_factory=dict)
    _samples: list[tuple[int, int, Sequence[int] | Sequence[str]]] = field(default_factory=list)
    _over_limit: bool = False

    def sink(self, path: str, format_name: str) -> Sink:
        """A sink for one more source."""
        self.sources.append(SourceInfo(path, format_name, 0))
        return Sink(self, len(self.sources) - 1, path)

    def add(self, name: str, piece: _Piece) -> None:
        """Take one piece of a signal; past MAX_SIGNALS names the rest is Damage."""
        if name not in self._pieces and len(self._pieces) >= MAX_SIGNALS:
            if not self._over_limit:
                self._over_limit = True
                self.damage.append(Damage(self.sources[piece.source].path, f"more than {MAX_SIGNALS} signal names", "the signals past that number"))
            return
        self._pieces.setdefault(name, []).append(piece)
        info = self.sources[piece.source]
        self.sources[piece.source] = SourceInfo(info.path, info.format, info.points + len(piece.steps), info.sha256)

    def samples(self) -> SampleIds | None:
        """The samples of every step; None where no source knows them."""
        if not self._samples:
            return None
        steps, sources, ids = zip(*self._samples, strict=True)
        starts = np.concatenate([[0], np.cumsum([len(part) for part in ids])]).astype(np.int64)
        texts = any(len(part) and isinstance(part[0], str) for part in ids)
        joined = tuple(str(i)[:TEXT_LIMIT] for part in ids for i in part) if texts else np.concatenate([np.asarray(part, dtype=np.int64) for part in ids])
        return SampleIds(np.array(steps, dtype=np.int64), np.array(sources, dtype=np.int64), starts, joined)

    def signals(self) -> tuple[Signal, ...]:
        """The signals, each joined over its sources in the order they were read."""
        return tuple(_join(name, pieces) for name, pieces in self._pieces.items())


@dataclass(frozen=True, slots=True)
class Sink:
    """What a parser writes to. All arrays one-dimensional and of equal length."""

    collector: Collector
    source: int
    path: str

    def points(
        self,
        name: str,
        steps: ArrayLike,
        values: ArrayLike,
        *,
        wall_times: ArrayLike | None = None,
        records: ArrayLike | None = None,
    ) -> None:
        """Add points of one signal in the order written. Call once or several times per signal.

        ``steps`` int64 (points,); ``values`` int64 or float (points,), NaN and infinities kept; ``wall_times`` UTC epoch
        seconds (points,); ``records`` 1-based record or line numbers (points,).
        """
        step_array = np.asarray(steps, dtype=np.int64)
        value_array = np.asarray(values)
        if value_array.dtype != np.int64:
            value_array = value_array.astype(np.float64, copy=False)
        if len(step_array) != len(value_array):
            raise ValueError(f"{name}: {len(step_array)} steps but {len(value_array)} values")
        if len(step_array) == 0:
            return
        times = None if wall_times is None else np.asarray(wall_times, dtype=np.float64)
        lines = None if records is None else np.asarray(records, dtype=np.int64)
        self.collector.add(name, _Piece(self.source, step_array, value_array, times, lines))

    def samples(self, step: int, ids: Sequence[int] | Sequence[str]) -> None:
        """Say which samples a step was taken on: int64 each, or texts."""
        self.collector._samples.append((step, self.source, ids))

    def config(self, values: Mapping[str, object]) -> None:
        """Add configuration. A name that is already there keeps its first value: the nearest source is read first."""
        own = self.collector.configs.setdefault(self.source, {})
        for key, value in flatten(values).items():
            self.collector.config.setdefault(key, value)
            own.setdefault(key, value)

    def damage(self, what: str, lost: str) -> None:
        """Say that part of this source could not be read, and how much was lost."""
        self.collector.damage.append(Damage(self.path, what, lost))

    def note(self, key: str, value: object) -> None:
        """A fact about the logging: run_id, run_name, exit_code, status, start_time, resumed, max_steps, writer ...

        Of several sources the first names the run, the last of the same format tells how it ended, and counts are added.
        """
        notes, kinds = self.collector.notes, self.collector.note_formats
        own = self.collector.sources[self.source].format
        if key not in notes:
            notes[key], kinds[key] = value, own
        elif key in ADDED:
            notes[key] = _sum(notes[key], value)
        elif key in ENDINGS and kinds.get(key) == own:
            notes[key] = value

    def progress(self, size: int) -> None:
        """Report bytes read, for the progress bar."""
        if self.collector.progress is not None:
            self.collector.progress(size)


def _sum(old: object, new: object) -> object:
    """Two counts, two lists, or counts under names, as one; the first where they are of different kinds."""
    if isinstance(old, int) and isinstance(new, int):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return (old + new)[:MOST_LISTED]
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _sum(old[key], new[key]) if key in old and key in new else old.get(key, new.get(key)) for key in {**old, **new}}
    return old


def flatten(values: Mapping[str, object], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """Nested configuration as ``a.b.c`` keys with plain values; long texts are cut, depth is bounded."""
    flat: dict[str, object] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < 8:
            flat.update(flatten(value, f"{name}.", depth + 1))
        elif isinstance(value, (bool, int, float)) or value is None:
            flat[name] = value
        elif isinstance(value, (list, tuple)) and len(value) <= 16 and all(isinstance(v, (bool, int, float, str)) for v in value):
            flat[name] = [v[:TEXT_LIMIT] if isinstance(v, str) else v for v in value]
        else:
            flat[name] = str(value)[:TEXT_LIMIT]
    return flat


def _join(name: str, pieces: Sequence[_Piece]) -> Signal:
    spans: list[Span] = []
    start = 0
    for piece in pieces:
        stop = start + len(piece.steps)
        if spans and spans[-1].source == piece.source:
            spans[-1] = Span(piece.source, spans[-1].start, stop)
        else:
            spans.append(Span(piece.source, start, stop))
        start = stop
    values: NDArray[np.float64] | NDArray[np.int64]
    if len(pieces) == 1:
        values = pieces[0].values
    elif all(p.values.dtype == np.int64 for p in pieces):
        values = np.concatenate([p.values for p in pieces]).astype(np.int64, copy=False)
    else:
        values = np.concatenate([p.values.astype(np.float64) for p in pieces])
    return Signal(
        name=name,
        steps=np.concatenate([p.steps for p in pieces]) if len(pieces) > 1 else pieces[0].steps,
        values=values,
        wall_times=_optional([p.wall_times for p in pieces]),
        records=_optional([p.records for p in pieces]),
        spans=tuple(spans),
    )


def _optional(parts: Sequence[NDArray[_T] | None]) -> NDArray[_T] | None:
    present = [p for p in parts if p is not None]
    if len(present) < len(parts) or not present:
        return None
    return present[0] if len(present) == 1 else np.concatenate(present)
