"""Which files under a path belong to which run.

A folder is walked, every file is offered to the parsers, and the claims are grouped into runs: by the format's own run
id, by folder, or by both. Nothing is read here beyond the head of each file.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forensics.model import Damage
from forensics.parsers import builtin
from forensics.parsers.interface import Claim, RunKey, Source

MAX_DEPTH = 12
MAX_ENTRIES = 100_000
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".tox"})
SKIPPED_SUFFIXES = frozenset(
    ".pt .pth .bin .safetensors .distcp .ckpt .npy .npz .h5 .pkl .onnx .png .jpg .jpeg .gif .mp4 .wav .py .pyc .so .zip .tar .whl".split()
)
"""Tensors, media and code: never a log of scalars. Checkpoints are read by their own command."""
WEAK = 35
"""A claim below this counts only where nothing under the path is claimed with more confidence."""

HELD_OUT = frozenset({"train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev"})
"""Folders and files of these names, side by side, are parts of one run."""

ORDER = ("wandb", "mlflow_sqlite", "mlflow_files", "hf_trainer", "jsonl", "csv", "tensorboard")
"""Reading order of the formats of one run: exact values before float32."""

TABLES = frozenset({"csv", "jsonl"})

LFS_MARK = b"version https://git-lfs.github.com/spec/v1"
LOG_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".wandb", ".db", ".sqlite"})
LOG_NAMES = ("events.out.tfevents", "trainer_state.json", "mlflow.db")


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source of a run. ``prefix`` goes before every signal name it writes."""

    path: Path
    parser: str
    run: RunKey = RunKey()
    size: int = 0
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveredRun:
    """One run: its sources in reading order, the configuration files beside it (nearest first).

    ``older`` holds earlier copies of the same log (trainer_state.json of older checkpoints); ``notes`` facts found on the way.
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
        """Bytes of all sources, for a progress bar."""
        return sum(s.size for s in self.sources)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything found under a path. ``damage`` is what could not be looked at; with exactly one run it is also in that run."""

    path: Path
    runs: tuple[DiscoveredRun, ...]
    damage: tuple[Damage, ...] = ()
    unclaimed: int = 0


@dataclass(slots=True)
class _Finds:
    claims: list[tuple[Source, Claim]] = field(default_factory=list)
    adjuncts: list[FoundSource] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    unclaimed: int = 0


def discover(path: Path) -> Discovery:
    """Find the runs at ``path``, a file or a folder. Raises FileNotFoundError where there is nothing."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(path)
    finds = _Finds()
    finds.damage.extend(Damage(str(path), problem, "the files only it can read") for problem in builtin.parsers().failed)
    if path.is_dir():
        for item in _walk(path, finds):
            _offer(item, finds)
    else:
        _offer(path, finds)
        beside = _Finds()
        for folder in (path.parent, path.parent / "files"):
            for item in _children(folder, beside):
                if item.is_file():
                    _offer(item, beside)
        finds.adjuncts = [a for a in beside.adjuncts if a.path != path]
    _drop_weak(finds)
    runs = _merge(path if path.is_dir() else path.parent, _group(path, finds))
    runs = [_with_adjuncts(run, finds.adjuncts) for run in runs]
    if len(runs) == 1:
        runs = [replace(runs[0], damage=tuple(finds.damage), path=path if not path.is_dir() or len(finds.claims) == 0 else runs[0].path)]
    return Discovery(path, tuple(sorted(runs, key=lambda r: (str(r.path), r.sources[0].run.order))), tuple(finds.damage), finds.unclaimed)


def _children(folder: Path, finds: _Finds) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as problem:
        finds.damage.append(Damage(str(folder), f"cannot be listed ({problem.strerror})", "everything in it"))
        return []


def _walk(root: Path, finds: _Finds) -> Iterator[Path]:
    """Every folder and file below ``root``, folders first seen as such; each real path once."""
    inside = root.resolve()
    seen: set[str] = set()
    entries = 0
    stack = [(root, 0)]
    while stack:
        folder, depth = stack.pop()
        yield folder
        folders: list[Path] = []
        for item in _children(folder, finds):
            entries += 1
            if entries > MAX_ENTRIES:
                finds.damage.append(Damage(str(root), f"more than {MAX_ENTRIES} files and folders", "the files past that number"))
                return
            try:
                real = item.resolve()
            except (OSError, RuntimeError):
                continue
            if (item.is_symlink() and not real.is_relative_to(inside)) or os.fspath(real) in seen:
                continue
            if item.is_dir():
                if item.is_symlink():
                    continue  # what it points to lies inside the root and is walked there
                seen.add(os.fspath(real))
                if item.name not in SKIPPED_FOLDERS:
                    folders.append(item)
            elif item.is_file():
                seen.add(os.fspath(real))
                if item.suffix.lower() not in SKIPPED_SUFFIXES:
                    yield item
        if depth + 1 > MAX_DEPTH and folders:
            finds.damage.append(Damage(str(folder), f"deeper than {MAX_DEPTH} folders", "everything below"))
            continue
        stack.extend((f, depth + 1) for f in reversed(folders))


def _offer(path: Path, finds: _Finds) -> None:
    """Let every parser look at the head of a path, keep the best claim."""
    try:
        source = Source.of(path)
    except OSError as problem:
        finds.damage.append(Damage(str(path), f"cannot be opened ({problem.strerror})", "the whole file"))
        return
    best: Claim | None = None
    for parser in builtin.parsers().loaded:
        try:
            claim = parser.sniff(source)
        except Exception as problem:  # noqa: BLE001 - a parser that fails on a head must not hide the others
            finds.damage.append(Damage(str(path), f"the {parser.NAME} parser failed on its head ({type(problem).__name__}: {problem})", "unknown"))
            continue
        if claim is not None and (best is None or claim.confidence > best.confidence):
            best = claim
    if source.is_dir and best is None:
        return
    if _is_log(path) and (source.size == 0 or source.head.startswith(LFS_MARK)) and not source.is_dir:
        what = "empty file" if source.size == 0 else "a Git LFS pointer stands in place of the file"
        finds.damage.append(Damage(str(path), what, "the whole file"))
        return
    if best is None:
        finds.unclaimed += 1
    elif best.adjunct:
        finds.adjuncts.append(FoundSource(path, best.parser, best.runs[0] if best.runs else RunKey(), source.size))
    else:
        finds.claims.append((source, best))


def _is_log(path: Path) -> bool:
    return path.suffix.lower() in LOG_SUFFIXES or path.name.startswith(LOG_NAMES)


def _drop_weak(finds: _Finds) -> None:
    if any(claim.confidence >= WEAK for _, claim in finds.claims):
        strong = [row for row in finds.claims if row[1].confidence >= WEAK]
        finds.unclaimed += len(finds.claims) - len(strong)
        finds.claims = strong


def _group(root: Path, finds: _Finds) -> list[DiscoveredRun]:
    by_parser: dict[str, list[tuple[Source, Claim]]] = defaultdict(list)
    for source, claim in finds.claims:
        by_parser[claim.parser].append((source, claim))
    runs: list[DiscoveredRun] = []
    for parser, claims in by_parser.items():
        found = [FoundSource(s.path, parser, key, s.size) for s, c in claims for key in c.runs]
        if parser == "wandb":
            runs.extend(_by_id(found))
        elif parser == "tensorboard":
            runs.extend(_by_folder(root, found))
        elif parser == "hf_trainer":
            runs.extend(_newest_state(found))
        elif parser in TABLES:
            runs.extend(_tables(found, {s.path: s for s, _ in claims}))
        else:
            runs.extend(DiscoveredRun(_name(f), f.path, (f,)) for f in found)
    return runs


def _name(source: FoundSource) -> str:
    return source.run.name or source.run.id or source.path.resolve().parent.name


def _by_id(found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    groups: dict[str, list[FoundSource]] = defaultdict(list)
    for source in found:
        groups[source.run.id or str(source.path)].append(source)
    for sources in groups.values():
        kept, notes = _without_copies(sources)
        path = kept[0].path.parent if len(kept) == 1 else Path(os.path.commonpath([s.path.parent for s in kept]))
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
            dropped.append(f"{source.path} is an older or equal copy of {twin.path}")
    kept.sort(key=lambda s: (s.run.order, str(s.path)))
    return kept, (("copies_dropped", dropped),) if dropped else ()


def _same_start(one: Path, other: Path, size: int) -> bool:
    try:
        with one.open("rb") as a, other.open("rb") as b:
            length = min(size, 1 << 15)
            return a.read(length) == b.read(length)
    except OSError:
        return False


def _by_folder(root: Path, found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    folders = {s.path.parent for s in found}
    groups: dict[Path, list[FoundSource]] = defaultdict(list)
    siblings: dict[Path, set[Path]] = defaultdict(set)
    for folder in folders:
        if folder.name.lower() in HELD_OUT and folder != root:
            siblings[folder.parent].add(folder)
    for source in found:
        folder = source.path.parent
        above = [a for a in folder.parents if a in folders and a.is_relative_to(root)]
        top = above[-1] if above else folder
        if top == folder and len(siblings.get(folder.parent, ())) > 1 and folder in siblings[folder.parent]:
            top = folder.parent
        prefix = "" if top == folder else folder.relative_to(top).as_posix() + "/"
        groups[top].append(replace(source, prefix=prefix))
    for top, sources in groups.items():
        sources.sort(key=lambda s: (s.prefix, s.run.order, str(s.path)))
        yield DiscoveredRun(top.resolve().name, top, tuple(sources))


def _newest_state(found: Sequence[FoundSource]) -> Iterator[DiscoveredRun]:
    groups: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folder = source.path.parent
        home = folder.parent if folder.name.startswith("checkpoint-") else folder
        groups[home].append(source)
    for home, sources in groups.items():
        sources.sort(key=lambda s: (-s.run.order, -s.size, str(s.path)))
        path = home if len(sources) > 1 else sources[0].path.parent
        yield DiscoveredRun(home.resolve().name, path, (sources[0],), older=tuple(sources[1:]))


def _tables(found: Sequence[FoundSource], sources: dict[Path, Source]) -> Iterator[DiscoveredRun]:
    folders: dict[Path, list[FoundSource]] = defaultdict(list)
    for source in found:
        folders[source.path.parent].append(source)
    for folder, tables in folders.items():
        if len(tables) == 1:
            yield DiscoveredRun(folder.resolve().name, folder, tuple(tables))
            continue
        yield from (DiscoveredRun(t.path.stem, t.path, (t,)) for t in tables)


def _merge(root: Path, runs: list[DiscoveredRun]) -> list[DiscoveredRun]:
    """One run per format under a folder: they are one run with several sources. Otherwise the sub-folders are looked at."""
    if len(runs) < 2:
        return runs
    if len({r.sources[0].parser for r in runs}) == len(runs):
        ordered = sorted(runs, key=_rank)
        first = ordered[0]
        notes = tuple(n for r in ordered for n in r.notes)
        name = next((s.run.name for r in ordered for s in r.sources if s.run.name), root.resolve().name)
        return [
            DiscoveredRun(name, root, tuple(s for r in ordered for s in r.sources), older=first.older + tuple(o for r in ordered[1:] for o in r.older), notes=notes)
        ]
    parts: dict[Path, list[DiscoveredRun]] = defaultdict(list)
    for run in runs:
        folder = run.path if run.path.is_dir() else run.path.parent
        below = folder.relative_to(root).parts if folder.is_relative_to(root) else ()
        parts[root / below[0] if below else root].append(run)
    out: list[DiscoveredRun] = []
    for part, members in parts.items():
        if part != root:
            out.extend(_merge(part, members))
        else:
            formats = {r.sources[0].parser for r in members}
            out.extend(_merge(root, members) if len(formats) == len(members) else members)
    return out


def _rank(run: DiscoveredRun) -> int:
    parser = run.sources[0].parser
    return ORDER.index(parser) if parser in ORDER else len(ORDER)


def _with_adjuncts(run: DiscoveredRun, adjuncts: Iterable[FoundSource]) -> DiscoveredRun:
    """Configuration of the run's own folder and what lies in it, then of the folders above, nearest first."""
    home = run.path if run.path.is_dir() else run.path.parent
    ranked: list[tuple[int, str, FoundSource]] = []
    for adjunct in adjuncts:
        folder = adjunct.path.parent
        if home == folder or home.is_relative_to(folder):
            ranked.append((2 * len(home.relative_to(folder).parts), str(adjunct.path), adjunct))
        elif folder.is_relative_to(home):
            ranked.append((2 * len(folder.relative_to(home).parts) - 1, str(adjunct.path), adjunct))
    return replace(run, adjuncts=tuple(row[2] for row in sorted(ranked, key=lambda row: row[:2])))
