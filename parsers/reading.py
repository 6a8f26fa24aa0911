"""From a discovered run to the Run: every source read, names mapped to roles, attempts told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from forensics.model import Damage, Run
from forensics.parsers import builtin
from forensics.parsers.attempts import split
from forensics.parsers.discovery import DiscoveredRun, FoundSource
from forensics.parsers.interface import NotMine, Progress, Source
from forensics.parsers.sink import Collector, Sink
from forensics.vocabulary import assign_roles


def read(found: DiscoveredRun, progress: Progress | None = None, overrides: Mapping[str, str] | None = None) -> Run:
    """Read everything of a run. Never raises on bad input: what could not be read is Damage.

    ``progress`` is called with the bytes just read; ``overrides`` maps role -> logged name.
    """
    collector = Collector(progress=progress)
    collector.damage.extend(found.damage)
    names = _Names()
    for source in (*found.sources, *found.adjuncts):
        _read_source(source, collector, names)
    for key, value in found.notes:
        collector.notes.setdefault(key, value)
    parted = split(assign_roles(collector.signals(), overrides), collector.sources)
    for key, value in parted.notes.items():
        collector.notes.setdefault(key, value)
    name = str(collector.notes.get("run_name") or found.name)
    return Run(str(found.path), name, tuple(collector.sources), parted.signals, parted.attempts, collector.config, collector.notes, tuple(collector.damage))


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
