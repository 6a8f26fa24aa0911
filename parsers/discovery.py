"""Which files under a path belong to which run.

A folder is walked, every file is offered to the parsers, and what they claim is grouped into runs. Nothing is read here
beyond the head of each file.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from forensics.model import Damage
from forensics.parsers import builtin, console, mlflow_files
from forensics.parsers.grouping import DiscoveredRun, FoundSource, attach, group
from forensics.parsers.interface import Claim, Parser, RunKey, Source

__all__ = ["DiscoveredRun", "Discovery", "FoundSource", "discover"]

MAX_DEPTH = 12
MAX_ENTRIES = 100_000
MAX_BESIDE = 2_000
"""Files looked at beside a single file that was named, in search of its configuration."""
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".tox"})
SKIPPED_SUFFIXES = frozenset(
    {".pt", ".pth", ".bin", ".safetensors", ".distcp", ".ckpt", ".npy", ".npz", ".h5", ".pkl", ".onnx", ".so", ".py", ".pyc"}
    | {".zip", ".tar", ".whl", ".png", ".jpg", ".jpeg", ".gif", ".mp4", ".wav", ".html", ".pdf"}
)
"""Tensors, media and code: never a log of scalars. Checkpoints are read by their own command."""
CONFIG_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml"})
WEAK = 35
"""A claim below this counts only where nothing under the path is claimed with more confidence."""

LFS_MARK = b"version https://git-lfs.github.com/spec/v1"
LOG_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".wandb", ".db", ".sqlite"})
LOG_NAMES = ("events.out.tfevents", "trainer_state.json", "mlflow.db")


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything found under a path.

    ``damage`` is what could not be looked at; where there is exactly one run it is in that run as well, and so in what
    ``read`` returns. ``unclaimed`` counts the files that no parser knows.
    """

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
    """Find the runs at ``path``, a file or a folder. Raises OSError where there is nothing or it may not be looked at."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(path)
    finds = _Finds()
    if path.is_dir():
        walk = _Walk(path, finds.damage)
        for item in walk:
            if _offer(item, finds) == mlflow_files.NAME:
                walk.closed.update(item / name for name in mlflow_files.FOLDERS)
        _drop_weak(finds)
        runs = group(path, finds.claims)
    else:
        _offer(path, finds)
        runs = group(path.parent, finds.claims)
        finds.adjuncts = _beside(path)
    finds.damage.extend(Damage(str(path), problem, "the files only it can read") for problem in builtin.parsers().problems)
    runs = attach(runs, finds.adjuncts)
    if len(runs) == 1:
        runs = [replace(runs[0], damage=tuple(finds.damage), path=runs[0].path if path.is_dir() else path)]
    ordered = sorted(runs, key=lambda run: (_natural(run.path), run.sources[0].run.order))
    return Discovery(path, tuple(ordered), tuple(finds.damage), finds.unclaimed)


def _natural(path: Path) -> list[tuple[bool, int, str]]:
    """A sorting key that puts version_2 before version_10."""
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d{1,18})", str(path))]


@dataclass(slots=True)
class _Walk:
    """The folders and files below a root, each real path once; symlinks that lead out of it are not followed."""

    root: Path
    damage: list[Damage]
    seen: set[str] = field(default_factory=set)
    entries: int = 0
    closed: set[Path] = field(default_factory=set)
    """Folders that are read as a part of their parent."""

    def __iter__(self) -> Iterator[Path]:
        inside = self.root.resolve()
        stack = [(self.root, 0)]
        while stack:
            folder, depth = stack.pop()
            yield folder
            below: list[Path] = []
            for item in self._children(folder):
                self.entries += 1
                if self.entries > MAX_ENTRIES:
                    self.damage.append(Damage(str(self.root), f"more than {MAX_ENTRIES} files and folders", "the files past that number"))
                    return
                if not self._is_new(item, inside):
                    continue
                if item.is_dir():
                    if item.name not in SKIPPED_FOLDERS and item not in self.closed:
                        below.append(item)
                elif item.is_file() and item.suffix.lower() not in SKIPPED_SUFFIXES:
                    yield item
            if below and depth + 1 > MAX_DEPTH:
                self.damage.append(Damage(str(folder), f"more than {MAX_DEPTH} folders deep", "everything below"))
            else:
                stack.extend((item, depth + 1) for item in reversed(below))

    def _children(self, folder: Path) -> list[Path]:
        """Files before links: a path is seen under its own name first."""
        try:
            return sorted(folder.iterdir(), key=lambda item: (item.is_symlink(), item.name))
        except OSError as problem:
            self.damage.append(Damage(str(folder), f"cannot be listed ({problem.strerror})", "everything in it"))
            return []

    def _is_new(self, item: Path, inside: Path) -> bool:
        try:
            real = item.resolve()
            linked_folder = item.is_symlink() and item.is_dir()
        except (OSError, RuntimeError):
            return False
        if linked_folder or not real.is_relative_to(inside) or os.fspath(real) in self.seen:
            return False  # a linked folder inside the root is walked where it really lies
        self.seen.add(os.fspath(real))
        return True


def _beside(path: Path) -> list[FoundSource]:
    """Configuration files next to a single log file, and in W&B's ``files`` folder."""
    finds = _Finds()
    for folder in (path.parent, path.parent / "files"):
        try:
            items = [i for i in folder.iterdir() if i.suffix.lower() in CONFIG_SUFFIXES and i != path]
        except OSError:
            continue
        for item in sorted(items)[:MAX_BESIDE]:
            if item.is_file():
                _offer(item, finds)
    return finds.adjuncts


def _offer(path: Path, finds: _Finds) -> str:
    """Let every parser look at the head of a path and keep the best claim; the name of its parser, "" where there is none."""
    try:
        if not path.is_dir() and not path.is_file():
            raise OSError(errno.EINVAL, "neither a file nor a folder")
        source = Source.of(path)
    except OSError as problem:
        finds.damage.append(Damage(str(path), f"cannot be opened ({problem.strerror})", "the whole file"))
        return ""
    if not source.is_dir and _is_log(path) and (source.size == 0 or source.head.startswith(LFS_MARK)):
        what = "empty file" if source.size == 0 else "a Git LFS pointer stands in place of the file"
        finds.damage.append(Damage(str(path), what, "the whole file"))
        return ""
    best = _best_claim(source, finds)
    if best is None and path.suffix.lower() == ".gz" and _is_log(path.with_suffix("")):
        finds.damage.append(Damage(str(path), "named as a packed log, but no log could be unpacked from it", "the whole file"))
    elif best is None:
        finds.unclaimed += not source.is_dir and not _is_pointer(path)
    elif best.adjunct:
        finds.adjuncts.append(FoundSource(path, best.parser, best.runs[0] if best.runs else RunKey(), source.size))
    else:
        finds.claims.append((source, best))
    return "" if best is None else best.parser


def _best_claim(source: Source, finds: _Finds) -> Claim | None:
    parsers = builtin.parsers()
    best = _best_of(parsers.plain(), source, None, finds)
    if source.is_dir or source.path.suffix.lower() in console.OTHER_SUFFIXES or (best is not None and best.confidence >= console.SUREST):
        return best
    return _best_of(parsers.console(), source, best, finds)


def _best_of(parsers: Iterator[Parser], source: Source, best: Claim | None, finds: _Finds) -> Claim | None:
    for parser in parsers:
        try:
            claim = parser.sniff(source)
        except Exception as problem:  # noqa: BLE001 - a parser that fails on a head must not hide the others
            what = f"the {parser.NAME} parser failed on its head ({type(problem).__name__}: {str(problem)[:200]})"
            finds.damage.append(Damage(str(source.path), what, "the file, where no other parser knows it"))
            continue
        if claim is not None and (best is None or claim.confidence > best.confidence):
            best = claim
    return best


def _is_log(path: Path) -> bool:
    return path.suffix.lower() in LOG_SUFFIXES or path.name.startswith(LOG_NAMES)


def _is_pointer(path: Path) -> bool:
    """W&B's ``latest-run`` copied as a file: it holds the name of a folder."""
    return path.name == "latest-run"


def _drop_weak(finds: _Finds) -> None:
    if any(claim.confidence >= WEAK for _, claim in finds.claims):
        strong = [row for row in finds.claims if row[1].confidence >= WEAK]
        finds.unclaimed += len(finds.claims) - len(strong)
        finds.claims = strong
