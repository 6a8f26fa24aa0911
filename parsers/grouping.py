"""From claimed files to runs: by the format's own run id, by folder, or by both."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from forensics.model import Damage
from forensics.parsers import csv_table, jsonl
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.vocabulary import Role, classify, normalise, step_column

HELD_OUT = frozenset({"train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev"})
"""Folders and files of these names, side by side, are parts of one run."""

ORDER = ("flight_recorder", "wandb", "mlflow_sqlite", "mlflow_files", "hf_trainer", "jsonl", "csv", "tensorboard")
"""Reading order of the formats of one run: exact values before float32."""

CONSOLE = "console."
"""Console logs of all frameworks count as one format: two of them in a folder are two runs, or two jobs of one."""

PLAIN_NAMES = frozenset({"train", "training", "output", "log", "logs", "main", "nohup", "stdout", "stderr", "out", "err", "console", "run"})
"""Stems of log files that say less than the name of their folder."""

TABLES = frozenset({csv_table.NAME, jsonl.NAME, "json_history", "parquet"})
"""Parsers of tables: several of them in a folder may be parts of one run."""

EMPTY_WANDB = 1 << 10
"""A .wandb file smaller than this holds no history; then the printed log is all there is."""

COMPARED = 1 << 16
"""Bytes two files of one run id must share at their beginning to be copies of each other."""

_CHECKPOINT = re.compile(r"checkpoint-(\d+)$")
_AXES = frozenset({Role.STEP, Role.EPOCH, Role.WALL_TIME})


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source of a run. ``prefix`` goes before every signal name it writes."""

    path: Path
    parser: str
    run: RunKey = field(default_factory=RunKey)
    size: int = 0
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveredRun:
    """One run: its sources in reading order, the configuration files beside it (nearest first).

    ``older`` holds earlier copies of the same log (trainer_state.json of older checkpoints); ``notes`` facts found on the
    way; ``damage`` what could not be looked at.
    """

    name: str
    path: Path
    sources: tuple[FoundSource, ...]
    adjuncts: tuple[FoundSource, ...] = ()
    older: tuple[FoundSource, ...] = ()
    notes: tuple[tuple[str, object], ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that will be read, for a progress bar; folders count nothing."""
        return sum(s.size for s in (*self.sources, *self.adjuncts))

    @property
    def home(self) -> Path:
        """The folder the run lies in."""
        return self.path if self.path.is_dir() else self.path.parent


def group(root: Path, claims: Iterable[tuple[Source, Claim]]) -> list[DiscoveredRun]:
    """The runs of a folder tree."""
    by_parser: dict[str, list[FoundSource]] = defaultdict(list)
    heads: dict[Path, Source] = {}
    for source, claim in claims:
        heads[source.path] = source
        by_parser[claim.parser].extend(FoundSource(source.path, claim.parser, key, source.size) for key in claim.runs)
    runs: list[DiscoveredRun] = []
    saved = {s.path.parent for s in by_parser["wandb"] if s.size > EMPTY_WANDB}
    for parser, found in by_parser.items():
        if parser.startswith(CONSOLE):
            runs.extend(DiscoveredRun(_log_name(f.path), f.path, (f,)) for f in found if not _is_output_of(f.path, saved))
        elif parser == "wandb":
            runs.extend(_by_id(found))
        elif parser == "tensorboard":
            runs.extend(_event_folders(root, found))
        elif parser == "flight_recorder":
            runs.extend(_flights(found))
        elif parser == "hf_trainer":
            runs.extend(_trainer_states(found))
        elif parser in TABLES:
            runs.extend(DiscoveredRun(f.run.name, f.path, (f,)) for f in found if f.run.id)
            runs.extend(_tables([f for f in found if not f.run.id], heads))
        else:
            runs.extend(DiscoveredRun(_name(f), f.path, (f,)) for f in found)
    return _merge(root, runs)


def attach(runs: Sequence[DiscoveredRun], adjuncts: Sequence[FoundSource]) -> list[DiscoveredRun]:
    """Give every run its configuration: from its own folder, from below it, then from the folders above, nearest first."""
    homes = [run.home for run in runs]
    return [replace(run, adjuncts=tuple(_nearest(run.home, homes, adjuncts))) for run in runs]


def _nearest(home: Path, homes: Sequence[Path], adjuncts: Sequence[FoundSource]) -> list[FoundSource]:
    ranked: list[tuple[int, str, FoundSource]] = []
    for adjunct in adjuncts:
        folder = adjunct.path.parent
        if home.is_relative_to(folder):
            ranked.append((2 * len(home.relative_to(folder).parts), str(adjunct.path), adjunct))
        elif folder.is_relative_to(home) and not any(h != home and h.is_relative_to(home) and folder.is_relative_to(h) for h in homes):
            ranked.append((2 * len(folder.relative_to(home).parts) - 1, str(adjunct.path), adjunct))
    return [row[2] for row in sorted(ranked, key=lambda row: row[:2])]


def _name(source: FoundSource) -> str:
    return source.run.name or source.run.id or source.path.resolve().parent.name


def _log_name(path: Path) -> str:
    return path.resolve().parent.name if path.name.lower().split(".")[0] in PLAIN_NAMES else path.name


def _is_output_of(path: Path, wandb_folders: Collection[Path]) -> bool:
    """Whether this is what W&B saved of the console of a run: the run's own file holds the numbers, and holds them exactly."""
    return path.name == "output.log" and path.parent.name == "files" and path.parent.parent in wandb_folders


def _by_id(found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    groups: dict[str, list[FoundSource]] = defaultdict(list)
    for source in found:
        groups[source.run.id or str(source.path)].append(source)
    for sources in groups.values():
        kept, notes = _without_copies(sources)
        path = Path(os.path.commonpath([s.path.parent for s in kept]))
        yield DiscoveredRun(_name(kept[0]), path, tuple(kept), notes=notes)


def _without_copies(sources: Sequence[FoundSource]) -> tuple[list[FoundSource], tuple[tuple[str, object], ...]]:
    """A file that is a shorter or equal copy of another (``latest-run`` as a real folder) is dropped and noted."""
    kept: list[FoundSource] = []
    dropped: list[str] = []
    for source in sorted(sources, key=lambda s: (-s.size, "latest-run" in s.path.parts, str(s.path))):
        twin = next((k for k in kept if k.path.name == source.path.name and _same_start(k.path, source.path, source.size)), None)
        if twin is None:
            kept.append(source)
        else:
            dropped.append(f"{source.path} is {'a copy' if source.size == twin.size else 'an older copy'} of {twin.path}")
    kept.sort(key=lambda s: (s.run.order, str(s.path)))
    return kept, (("copies_dropped", dropped),) if dropped else ()


def _same_start(one: Path, other: Path, size: int) -> bool:
    try:
        with one.open("rb") as a, other.open("rb") as b:
            length = min(size, COMPARED)
            return a.read(length) == b.read(length)
    except OSError:
        return False


def _event_folders(root: Path, found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    """Event files of one folder are one run; so are those of folders below a folder with event files, with a prefix."""
    folders = {s.path.parent for s in found}
    siblings = Counter(f.parent for f in folders if f != root and f.name.lower() in HELD_OUT)
    groups: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folder = source.path.parent
        above = [a for a in folder.parents if a in folders and a.is_relative_to(root)]
        top = above[-1] if above else folder
        if top.name.lower() in HELD_OUT and siblings[top.parent] > 1:
            top = top.parent
        prefix = "" if top == folder else folder.relative_to(top).as_posix() + "/"
        groups[top].append(replace(source, prefix=prefix))
    for top, sources in groups.items():
        sources.sort(key=lambda s: (s.prefix, s.run.order, str(s.path)))
        yield DiscoveredRun(top.resolve().name, top, tuple(sources))


def _flights(found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    """The files of all ranks in one folder are one run, which lies in the folder above."""
    folders: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folders[source.path.parent].append(source)
    for folder, sources in folders.items():
        home = folder.parent if folder.name == "flight" else folder
        sources.sort(key=lambda s: (s.run.order, str(s.path)))
        yield DiscoveredRun(home.resolve().name, home if len(sources) > 1 or folder.name == "flight" else sources[0].path, tuple(sources))


def _trainer_states(found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    """The state of a run and those in its checkpoint-N folders: the furthest one is read, the others are compared."""
    groups: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folder = source.path.parent
        groups[folder.parent if _CHECKPOINT.search(folder.name) else folder].append(source)
    for home, sources in groups.items():
        sources.sort(key=lambda s: (-(s.run.order or _checkpoint_step(s.path)), -s.size, str(s.path)))
        path = home if len(sources) > 1 else sources[0].path.parent
        yield DiscoveredRun(home.resolve().name, path, (sources[0],), older=tuple(sources[1:]))


def _checkpoint_step(path: Path) -> float:
    step = _CHECKPOINT.search(path.parent.name)
    return float(step[1]) if step else 0.0


def _tables(found: Sequence[FoundSource], heads: Mapping[Path, Source]) -> Iterator[DiscoveredRun]:
    folders: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folders[source.path.parent].append(source)
    for folder, tables in folders.items():
        by_axis: dict[str, list[FoundSource]] = defaultdict(list)
        columns = {t.path: _columns(heads[t.path], t.parser) for t in tables}
        for table in tables:
            axis = step_column(columns[table.path])
            by_axis[normalise(axis) if axis else str(table.path)].append(table)
        for parts in by_axis.values():
            joined = _as_parts(parts, columns)
            if joined and len(by_axis) == 1:
                yield DiscoveredRun(folder.resolve().name, folder, joined)
            elif joined:
                yield DiscoveredRun(joined[0].path.stem, joined[0].path, joined)
            else:
                yield from (DiscoveredRun(t.path.stem, t.path, (t,)) for t in parts)


def _columns(source: Source, parser: str) -> tuple[str, ...]:
    if parser == csv_table.NAME:
        return csv_table.head_columns(source)
    if parser == jsonl.NAME:
        return jsonl.head_columns(source)
    columns: tuple[str, ...] = import_module(f"forensics.parsers.{parser}").head_columns(source)
    return columns


def _as_parts(tables: Sequence[FoundSource], columns: Mapping[Path, tuple[str, ...]]) -> tuple[FoundSource, ...]:
    """The tables as parts of one run, with prefixes where names collide; () where they look like runs of their own."""
    ordered = sorted(tables, key=lambda t: str(t.path))
    if len(ordered) == 1:
        return tuple(ordered)
    names = [{n for n in columns[t.path] if classify(n)[0] not in _AXES} for t in ordered]
    counts = Counter(n for part in names for n in part)
    if max(counts.values(), default=0) < 2:
        return tuple(ordered)
    words = [next((w for w in normalise(t.path.stem).split("_") if w in HELD_OUT), "") for t in ordered]
    if all(part == names[0] for part in names) and not any(words):
        return ()
    distinct = all(words) and len(set(words)) == len(words)
    return tuple(replace(t, prefix=f"{word if distinct else t.path.stem}/") for t, word in zip(ordered, words, strict=True))


def _merge(root: Path, runs: Sequence[DiscoveredRun]) -> list[DiscoveredRun]:
    """One run per format under a folder: they are one run with several sources. Otherwise the sub-folders are looked at."""
    if len(runs) < 2:
        return list(runs)
    if _are_one(runs):
        return [_joined(root, runs)]
    below: dict[Path, list[DiscoveredRun]] = defaultdict(list)
    for run in runs:
        parts = run.home.relative_to(root).parts if run.home.is_relative_to(root) else ()
        below[root / parts[0] if parts else root].append(run)
    own = below.pop(root, [])
    if len(own) > 1 and _are_one(own):
        own = [_joined(root, own)]
    return [*own, *(run for folder, members in below.items() for run in _merge(folder, members))]


def _are_one(runs: Sequence[DiscoveredRun]) -> bool:
    """Whether every format is there once, apart from console logs that lie above or below the only other run."""
    if len({_format(r) for r in runs}) == len(runs):
        return True
    others = [r for r in runs if _format(r) != CONSOLE]
    logs = [r.path.parent for r in runs if _format(r) == CONSOLE]
    return len(others) == 1 and all(others[0].home.is_relative_to(log) or log.is_relative_to(others[0].home) for log in logs)


def _format(run: DiscoveredRun) -> str:
    parser = run.sources[0].parser
    return CONSOLE if parser.startswith(CONSOLE) else parser


def _joined(root: Path, runs: Sequence[DiscoveredRun]) -> DiscoveredRun:
    ordered = sorted(runs, key=_rank)
    name = next((s.run.name for r in ordered for s in r.sources if s.run.name), root.resolve().name)
    return DiscoveredRun(
        name,
        root,
        sources=tuple(s for r in ordered for s in r.sources),
        older=tuple(s for r in ordered for s in r.older),
        notes=tuple(n for r in ordered for n in r.notes),
    )


def _rank(run: DiscoveredRun) -> int:
    parser = run.sources[0].parser
    return ORDER.index(parser) if parser in ORDER else len(ORDER)
