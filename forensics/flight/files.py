"""The recorder's files of one rank: records in two halves of bounded size, batches within a budget."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from forensics.flight.records import FOLDER, MAGIC, SUFFIX

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

BATCHES = "batches"
"""Folder of kept batches, below FOLDER."""

_BATCH_NAME = re.compile(r"step(-?\d{1,19})-(rank\d{1,9}(?:-pid\d{1,9})?)\.safetensors")


def batch_name(step: int, owner: str) -> str:
    """File name of a kept batch; names sort by step."""
    return f"step{step:010d}-{owner}.safetensors"


def batch_step(name: str) -> int | None:
    """The step of a kept batch by its file name, None where the name is another."""
    found = _BATCH_NAME.fullmatch(name)
    return int(found[1]) if found else None


class RecordFile:
    """Records of one rank. When half of ``most`` bytes is reached, the file becomes the older half and the former older one goes.

    ``opening`` gives the records that every half begins with.
    """

    def __init__(self, run_dir: Path, rank: int, most: int, opening: Callable[[], bytes]) -> None:
        self.folder = run_dir / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.owner = f"rank{rank}"
        self._most = most
        self._opening = opening
        self._fd = self._open()
        self.append(opening())

    @property
    def path(self) -> Path:
        """The half that is written."""
        return self.folder / f"{self.owner}{SUFFIX}"

    def append(self, data: bytes) -> None:
        """Append a whole record. Raises OSError."""
        if self._size + len(data) > self._most // 2:
            self._rotate()
        self._size += os.write(self._fd, data)

    def sync(self) -> None:
        """Have the disk hold what was written."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Close; the lock goes with it."""
        os.close(self._fd)

    def _open(self) -> int:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if fcntl is not None:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                if "-pid" in self.owner:
                    raise
                # Another live process writes as this rank: a job without a launcher's variables.
                self.owner = f"{self.owner}-pid{os.getpid()}"
                return self._open()
        self._size = os.fstat(fd).st_size
        if self._size == 0:
            self._size = os.write(fd, MAGIC)
        return fd

    def _rotate(self) -> None:
        self.path.replace(self.folder / f"{self.owner}.older{SUFFIX}")
        os.close(self._fd)
        self._fd = self._open()
        self._size += os.write(self._fd, self._opening())


def keep_batch(folder: Path, name: str, data: bytes, most: int) -> Path | None:
    """Write a batch whole or not at all; the oldest ones of the same rank go where the budget of ``most`` bytes asks for it.

    None where the batch alone is larger than the budget. Raises OSError.
    """
    if len(data) > most:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    owner = name.partition("-")[2]
    kept = sorted((p for p in folder.iterdir() if p.name.endswith(owner) and batch_step(p.name) is not None), key=lambda p: p.stat().st_mtime_ns)
    total = sum(p.stat().st_size for p in kept)
    while kept and total + len(data) > most:
        oldest = kept.pop(0)
        total -= oldest.stat().st_size
        oldest.unlink()
    path, draft = folder / name, folder / f".{name}.draft"
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
