"""Checkpoints beside the logs of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from forensics.model.checkpoint import Checkpoint, TensorKind
from forensics.parsers.checkpoints.opened import LFS_MARK
from forensics.parsers.checkpoints.reading import SUFFIXES, is_checkpoint, read

MAX_DEPTH = 6
MAX_ENTRIES = 100_000
SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "wandb", "mlruns"})
"""Folders that hold no checkpoints of this run, or copies of other runs' files."""
KEPT_BATCHES = ("flight", "batches")
"""Where the flight recorder keeps batches, in a format that checkpoints have as well."""


def folder_of(path: Path) -> Path | None:
    """Where the checkpoints of the run at ``path`` may be: its folder; of a log file, the folder around it.

    Where that folder holds more logs of the kind, checkpoints in it could be anyone's: then only a folder with the log's own
    name counts, and None where there is none.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        return None
    try:
        with os.scandir(path.parent) as entries:
            others = any(e.name != path.name and Path(e.name).suffix == path.suffix and e.is_file() for e in entries)
    except OSError:
        return None
    own = path.with_suffix("")
    return path.parent if not others else own if own.is_dir() else None


def checkpoints_of(path: Path | str, limit: int = 1000) -> tuple[Checkpoint, ...]:
    """The checkpoints under a folder (or beside a log file), sorted by step; those without a step come first.

    Files of another kind are passed over. Never raises on content; raises OSError where the folder does not exist.
    """
    path = Path(path)
    root = path if path.is_dir() else path.parent
    found: list[Checkpoint] = []
    seen: set[tuple[str, ...]] = set()
    for place in _candidates(root):
        if len(found) >= limit:
            break
        try:
            checkpoint = read(place)
        except OSError:
            continue
        if _is_state(checkpoint) and checkpoint.files not in seen:
            seen.add(checkpoint.files)
            found.append(checkpoint)
    return tuple(sorted(found, key=lambda c: (c.step if c.step is not None else -1, c.path)))


def _candidates(root: Path) -> Iterator[Path]:
    """Files and folders that look like checkpoints; what is inside a checkpoint folder is not listed again."""
    stack = [(root, 0)]
    entries = 0
    whole = is_checkpoint(root)
    if whole:
        yield root
    while stack:
        folder, depth = stack.pop()
        try:
            inside = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError:
            continue
        for entry in inside:
            entries += 1
            if entries > MAX_ENTRIES:
                return
            path = Path(entry.path)
            if (entry.is_symlink() and not _within(path, root)) or path.parts[-2:] == KEPT_BATCHES:
                continue
            if entry.is_dir():
                if is_checkpoint(path):
                    yield path
                elif depth < MAX_DEPTH and entry.name not in SKIPPED:
                    stack.append((path, depth + 1))
            elif path.suffix in SUFFIXES and not (whole and folder == root) and (is_checkpoint(path) or _is_pointer(path)):
                yield path


def _within(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(LFS_MARK)) == LFS_MARK
    except OSError:
        return False


def _is_state(checkpoint: Checkpoint) -> bool:
    """A checkpoint has weights or an optimizer; a saved batch or a table of numbers has neither."""
    if checkpoint.damage and not checkpoint.tensors:
        return True
    return bool(checkpoint.param_groups) or sum(t.kind is TensorKind.PARAM for t in checkpoint.tensors) >= 2
