"""PyTorch's files since 1.6: a zip archive of a pickle and one stored entry per storage.

The entries are not compressed, so every tensor lies at a fixed place of the file, and only the pickle is read here.
"""

from __future__ import annotations

import os
import struct
import zipfile
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
    opened = Opened(path, NAME, size=path.stat().st_size)
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as problem:
            raise CheckpointError(f"the list of entries at the end of the archive is missing or broken ({problem}): the file is cut off") from problem
        with archive:
            entries = _entries(archive, opened)
            _read_pickle(entries, file.fileno(), opened)
    return opened


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


def _read_pickle(entries: dict[str, zipfile.ZipInfo], number: int, opened: Opened) -> None:
    names = [n for n in entries if n == "data.pkl" or (n.endswith("/data.pkl") and n.count("/") == 1)]
    if not names:
        if any(n.endswith(("constants.pkl", "model.json", ".npy")) for n in entries):
            raise CheckpointError("the archive is no checkpoint (a compiled model, or arrays)")
        raise CheckpointError("the archive holds no data.pkl: it is no PyTorch file")
    root = names[0][: -len("data.pkl")]
    info = entries[names[0]]
    data = _stored(info, number, opened.size)
    if data is None:
        raise CheckpointError(f"{names[0]} is compressed, too large, or outside of the file: no PyTorch file has that")
    swapped = _text(entries, f"{root}byteorder", number, opened.size) == "big"
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
            places[storage.key] = None if entry is None else _place(entry, number, opened.size)
        return places[storage.key]

    place_tensors(opened, find, swapped=swapped)


def _place(info: zipfile.ZipInfo, number: int, size: int) -> Place | None:
    """Where the bytes of a stored entry lie; None where it is compressed, encrypted, or reaches outside of the file."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
        return None
    header = os.pread(number, LOCAL_HEADER.size, info.header_offset) if 0 <= info.header_offset < size else b""
    if len(header) < LOCAL_HEADER.size or not header.startswith(MAGIC):
        return None
    fields = LOCAL_HEADER.unpack(header)
    offset = info.header_offset + LOCAL_HEADER.size + fields[9] + fields[10]
    return Place(offset, info.file_size) if offset + info.file_size <= size else None


def _stored(info: zipfile.ZipInfo, number: int, size: int) -> bytes | None:
    place = _place(info, number, size)
    if place is None or place.length > MAX_PICKLE_BYTES:
        return None
    return os.pread(number, place.length, place.offset)


def _text(entries: dict[str, zipfile.ZipInfo], name: str, number: int, size: int) -> str:
    info = entries.get(name)
    data = _stored(info, number, size) if info is not None and info.file_size < 100 else None
    return data.decode("utf-8", "replace").strip() if data else ""
