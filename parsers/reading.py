"""From a discovered run to the Run: every source read, names mapped to roles, attempts told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from forensics.model import Damage, Run, Signal
from forensics.parsers import builtin, duplicates, hf_trainer
from forensics.parsers.attempts import split
from forensics.parsers.discovery import DiscoveredRun, FoundSource
from forensics.parsers.interface import NotMine, Progress, Source
from forensics.parsers.sink import Collector, Sink
from forensics.vocabulary import assign_roles

MAX_COPIES = 64
"""Older copies of a log history that are compared with the newest one."""
MAX_COPY_BYTES = 1 << 28
"""Bytes of them in total: a comparison must not cost more than the reading."""


def read(found: DiscoveredRun, progress: Progress | None = None, overrides: Mapping[str, str] | None = None) -> Run:
    """Read everything of a run. Never raises on bad input: what could not be read is Damage.

    ``progress`` is called with the bytes just read; ``overrides`` maps role -> logged name.
    """
    collector = Collector(progress=progress)
    collector.damage.extend(found.damage)
    names = _Names()
    found = _with_whole_copy(found, collector)
    for source in (*found.sources, *found.adjuncts):
        _read_source(source, collector, names)
    for key, value in _compare_older(found):
        collector.notes.setdefault(key, value)
    for key, value in found.notes:
        collector.notes.setdefault(key, value)
    parted = split(assign_roles(collector.signals(), overrides), collector.sources)
    for key, value in (*parted.notes.items(), *duplicates.facts(parted.signals).items()):
        collector.notes.setdefault(key, value)
    name = str(collector.notes.get("run_name") or found.name)
    return Run(
        path=str(found.path),
        name=name,
        sources=tuple(collector.sources),
        signals=parted.signals,
        attempts=parted.attempts,
        config=collector.config,
        notes=collector.notes,
        damage=tuple(collector.damage),
        attempt_configs=_attempt_configs(parted.signals, len(parted.attempts), collector.configs),
        samples=collector.samples(),
    )


def _attempt_configs(signals: Sequence[Signal], attempts: int, configs: Mapping[int, Mapping[str, object]]) -> tuple[Mapping[str, object], ...]:
    """The settings of each attempt: those logged by the source that its first points come from."""
    if attempts < 2 or len(configs) < 2:
        return ()
    out: list[Mapping[str, object]] = []
    for number in range(attempts):
        begins = (s.origin(s.starts[number])[0] for s in signals if len(s.starts) == attempts and s.starts[number] < len(s))
        sources = Counter(begins).most_common(1)
        out.append(dict(configs.get(sources[0][0], {})) if sources else {})
    return tuple(out) if sum(bool(c) for c in out) >= 2 else ()


def _with_whole_copy(found: DiscoveredRun, collector: Collector) -> DiscoveredRun:
    """The run, where a damaged trainer_state gives way to an older copy that holds more entries."""
    for place, source in enumerate(found.sources):
        if source.parser != hf_trainer.NAME or not found.older:
            continue
        history = _history(source)
        if history is None or not history.problem:
            continue
        copies = [(copy, h) for copy in found.older[:MAX_COPIES] if (h := _history(copy)) is not None]
        best, most = max(copies, key=lambda row: len(row[1].entries), default=(source, history))
        if len(most.entries) <= len(history.entries):
            continue
        lost = f"the entries after the {len(most.entries)} of the older copy {best.path}, which was read instead"
        collector.damage.append(Damage(str(source.path), history.problem, lost))
        older = tuple(copy for copy in found.older if copy is not best)
        return replace(found, sources=(*found.sources[:place], best, *found.sources[place + 1 :]), older=older)
    return found


def _compare_older(found: DiscoveredRun) -> list[tuple[str, object]]:
    """Facts about older copies of a log history: exact beginnings, or another story since some step."""
    newest = next((s for s in found.sources if s.parser == hf_trainer.NAME), None)
    if newest is None or not found.older:
        return []
    history = _history(newest)
    prefixes: list[str] = []
    rewritten: list[str] = []
    budget = MAX_COPY_BYTES
    for copy in found.older[:MAX_COPIES]:
        budget -= copy.size
        older = _history(copy) if budget >= 0 else None
        if history is None or older is None or older.problem:
            continue
        step = hf_trainer.first_difference(history, older)
        if step is None:
            prefixes.append(str(copy.path))
        else:
            rewritten.append(f"{copy.path} differs from {newest.path} from step {step} on")
    facts: list[tuple[str, object]] = [("older_copies", prefixes)] if prefixes else []
    if rewritten:
        facts.append(("rewritten_history", rewritten))
    unread = len(found.older) - len(prefixes) - len(rewritten)
    if unread:
        facts.append(("copies_not_compared", unread))
    return facts


def _history(source: FoundSource) -> hf_trainer.History | None:
    try:
        return hf_trainer.load(Source.of(source.path))
    except OSError:
        return None


@dataclass(slots=True)
class _Names:
    """Which format wrote a name first; the same name from another format gets ``@format``."""

    owner: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _NamedSink(Sink):
    names: _Names = field(default_factory=_Names)
    format: str = ""
    prefix: str = ""

    def points(
        self, name: str, steps: ArrayLike, values: ArrayLike, *, wall_times: ArrayLike | None = None, records: ArrayLike | None = None
    ) -> None:
        """Add points under the run-wide name of the signal."""
        full = name if name.startswith(self.prefix) else f"{self.prefix}{name}"
        if self.names.owner.setdefault(full, self.format) != self.format:
            full = f"{full}@{self.format}"
        Sink.points(self, full, steps, values, wall_times=wall_times, records=records)


def _read_source(found: FoundSource, collector: Collector, names: _Names) -> None:
    plain = collector.sink(str(found.path), found.parser)
    sink = _NamedSink(collector, plain.source, plain.path, names, found.parser, found.prefix)
    try:
        builtin.parsers().named(found.parser).parse(Source.of(found.path), sink, found.run)
    except NotMine as reason:
        sink.damage(f"not a {found.parser} file after all ({reason})", "the whole file")
    except OSError as problem:
        sink.damage(f"cannot be read ({problem.strerror or problem})", "the whole file or what follows the last point")
    except Exception as problem:  # noqa: BLE001 - one failing parser must not take the report with it
        collector.damage.append(Damage(plain.path, f"the parser failed: {type(problem).__name__}: {str(problem)[:200]}", "what it had not read yet"))
