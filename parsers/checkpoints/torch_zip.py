"""PyTorch's files since 1.6: a zip archive of a pickle and one stored entry per storage.

The entries are not compressed, so every tensor lies at a fixed place of the file, and only the pickle is read here.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import CheckpointError, Opened, Place, place_tensors
from forensics.parsers.checkpoints.safe_pickle import PickleError, load
from forensics.parsers.checkpoints.torch_names import MEANINGS, persistent_storage
from forensics.parsers.checkpoints.tree import Storage

NAME = "torch zip"

MAGIC = b"PK\x03\x04"

MAX_PICKLE_BYTES = 1 << 29
"""The pickle holds names, not numbers: those of the largest models are some tens of megabytes."""

MAX_ENTRIES = 2_000_000
"""Entries of an archive: one per storage."""

LOCAL_HEADER = struct.Struct("<4s5H3I2H")


def read(path: Path) -> Opened:
    """Read the facts of an archive. Raises CheckpointError where it is no checkpoint, OSError where it cannot be read."""
    with path.open("rb") as file:
        return read_part(path, file.fileno(), 0, path.stat().st_size)


def read_part(path: Path, number: int, start: int, length: int) -> Opened:
    """Read an archive that is a part of a file, open as ``number``. Raises as ``read`` does."""
    opened = Opened(path, NAME, size=length)
    with Window(number, start, length) as window:
        try:
            archive = zipfile.ZipFile(window)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as problem:
            raise CheckpointError(f"the list of entries at the end of the archive is missing or broken ({problem}): the file is cut off") from problem
        with archive:
            entries = _entries(archive, opened)
            _read_pickle(entries, _Part(number, start, length), opened)
    return opened


class Window(io.RawIOBase):
    """A part of an open file as a file of its own."""

    def __init__(self, number: int, start: int, length: int) -> None:
        super().__init__()
        self.number, self.start, self.length, self.at = number, start, length, 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be searched."""
        return True

    def tell(self) -> int:
        """The place in the part."""
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the part."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.length}[whence]
        if base + offset < 0:
            raise ValueError("a place before the part")
        self.at = base + offset
        return self.at

    def read(self, size: int | None = -1) -> bytes:
        """Bytes up to the end of the part."""
        left = max(0, self.length - self.at)
        data = os.pread(self.number, left if size is None or size < 0 else min(size, left), self.start + self.at)
        self.at += len(data)
        return data


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an open file: its number, first byte and length."""

    number: int
    start: int
    length: int

    def pread(self, length: int, offset: int) -> bytes:
        return os.pread(self.number, length, self.start + offset)


def _entries(archive: zipfile.ZipFile, opened: Opened) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise CheckpointError(f"the archive has {len(infos)} entries")
    entries: dict[str, zipfile.ZipInfo] = {}
    double = 0
    for info in infos:
        double += info.filename in entries
        entries.setdefault(info.filename, info)
    if double:
        opened.damage.append(Damage(str(opened.path), "entries of the archive with the same name: which one counts is unclear", f"{double} entries"))
    return entries


def _read_pickle(entries: dict[str, zipfile.ZipInfo], part: _Part, opened: Opened) -> None:
    names = [n for n in entries if n == "data.pkl" or (n.endswith("/data.pkl") and n.count("/") == 1)]
    if not names:
        if any(n.endswith(("constants.pkl", "model.json", ".npy")) for n in entries):
            raise CheckpointError("the archive is no checkpoint (a compiled model, or arrays)")
        raise CheckpointError("the archive holds no data.pkl: it is no PyTorch file")
    root = names[0][: -len("data.pkl")]
    info = entries[names[0]]
    data = _stored(info, part)
    if data is None:
        raise CheckpointError(f"{names[0]} is compressed, too large, or outside of the file: no PyTorch file has that")
    swapped = _text(entries, f"{root}byteorder", part) == "big"
    with_code = any(n.startswith(f"{root}code/") for n in entries)
    try:
        pickled = load(data, MEANINGS, persistent_storage)
    except PickleError as problem:
        raise CheckpointError(f"its pickle cannot be read: {problem}") from problem
    opened.tree, opened.names, opened.calls = pickled.value, pickled.names, pickled.calls
    if with_code:
        opened.format = "torchscript"
    places: dict[str, Place | None] = {}

    def find(storage: Storage) -> Place | None:
        if storage.key not in places:
            entry = entries.get(f"{root}data/{storage.key}")
            places[storage.key] = None if entry is None else _place(entry, part)
        return places[storage.key]

    place_tensors(opened, find, swapped=swapped)


def _place(info: zipfile.ZipInfo, part: _Part) -> Place | None:
    """Where in the file the bytes of a stored entry lie; None where it is compressed, encrypted, or reaches out of the archive."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
        return None
    header = part.pread(LOCAL_HEADER.size, info.header_offset) if 0 <= info.header_offset < part.length else b""
    if len(header) < LOCAL_HEADER.size or not header.startswith(MAGIC):
        return None
    fields = LOCAL_HEADER.unpack(header)
    offset = info.header_offset + LOCAL_HEADER.size + fields[9] + fields[10]
    return Place(part.start + offset, info.file_size) if offset + info.file_size <= part.length else None


def _stored(info: zipfile.ZipInfo, part: _Part) -> bytes | None:
    place = _place(info, part)
    if place is None or place.length > MAX_PICKLE_BYTES:
        return None
    return os.pread(part.number, place.length, place.offset)


def _text(entries: dict[str, zipfile.ZipInfo], name: str, part: _Part) -> str:
    info = entries.get(name)
    data = _stored(info, part) if info is not None and info.file_size < 100 else None
    return data.decode("utf-8", "replace").strip() if data else ""
