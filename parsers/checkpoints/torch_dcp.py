"""torch.distributed.checkpoint: a folder with ``.metadata`` (what lies where) and one or more ``.distcp`` files per rank.

``.metadata`` is a bare pickle, which PyTorch itself loads with the ordinary unpickler; here it is read by the same machine
as every other pickle. A tensor may be cut into chunks by any layout of ranks: its pieces are placed in the whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forensics.model.checkpoint import Piece
from forensics.model.damage import Damage
from forensics.parsers.checkpoints import torch_zip
from forensics.parsers.checkpoints.opened import CheckpointError, Opened
from forensics.parsers.checkpoints.safe_pickle import Made, PickleError, load
from forensics.parsers.checkpoints.torch_names import MEANINGS, dtype_name
from forensics.parsers.checkpoints.tree import Tensor, children

NAME = "torch dcp"

METADATA = ".metadata"

MAX_METADATA_BYTES = 1 << 29


def is_mine(folder: Path) -> bool:
    """Whether a folder is such a checkpoint."""
    return (folder / METADATA).is_file()


def read(folder: Path) -> Opened:
    """Read the facts. Raises CheckpointError where the metadata is broken, OSError where it cannot be read."""
    source = folder / METADATA
    if source.stat().st_size > MAX_METADATA_BYTES:
        raise CheckpointError(f"its metadata have {source.stat().st_size} bytes")
    data = source.read_bytes()
    try:
        pickled = load(data, MEANINGS)
    except PickleError as problem:
        raise CheckpointError(f"its metadata cannot be read: {problem}") from problem
    about = _fields(pickled.value)
    described, stored = about.get("state_dict_metadata"), about.get("storage_data")
    if not isinstance(described, Mapping) or not isinstance(stored, Mapping):
        raise CheckpointError("its metadata have no list of tensors")
    opened = Opened(folder, NAME, names=pickled.names, calls=pickled.calls, size=len(data))
    with _Files(folder, opened) as files:
        places = _places(stored)
        paths = about.get("planner_data")
        tree: dict[str, Any] = {}
        for name, entry in described.items():
            fields = _fields(entry)
            value = _tensor(str(name), fields, places, files) if "size" in fields else _object(str(name), places, files)
            if value is not None:
                _put(tree, _path(str(name), paths), value)
        files.report()
    opened.tree = tree
    return opened


def _fields(value: Any) -> Mapping[str, Any]:
    """The attributes of an object that was not made."""
    return dict(children(value)) if isinstance(value, Made) else {}


Places = dict[str, dict[tuple[int, ...], tuple[str, int, int]]]
"""Name -> first index of a chunk -> file, first byte and length."""


def _places(stored: Mapping[Any, Any]) -> Places:
    places: Places = {}
    for key, value in stored.items():
        index, where = _fields(key), _fields(value)
        offset = index.get("offset")
        first = tuple(offset) if isinstance(offset, tuple) and all(isinstance(i, int) for i in offset) else ()
        file, start, length = where.get("relative_path"), where.get("offset"), where.get("length")
        if isinstance(file, str) and isinstance(start, int) and isinstance(length, int) and start >= 0 and length >= 0:
            places.setdefault(str(index.get("fqn")), {})[first] = (file, start, length)
    return places


def _path(name: str, paths: Any) -> tuple[str, ...]:
    path = paths.get(name) if isinstance(paths, Mapping) else None
    return tuple(str(p)[:500] for p in path) if isinstance(path, tuple) and path else (name,)


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        inside = tree.setdefault(key, {})
        if not isinstance(inside, dict):
            return
        tree = inside
    tree[path[-1]] = value


def _tensor(name: str, fields: Mapping[str, Any], places: Places, files: _Files) -> Tensor | None:
    """A tensor with the pieces that its chunks are."""
    size, properties = fields.get("size"), fields.get("properties")
    state = properties.state if isinstance(properties, Made) else None
    try:
        dtype = dtype_name(state[0] if isinstance(state, tuple) else _fields(properties).get("dtype"))
        shape = _ints(size)
    except (ValueError, TypeError, IndexError):
        files.odd.append(name)
        return None
    tensor = Tensor(None, dtype, shape, ())
    pieces: list[Piece] = []
    for chunk in fields.get("chunks") or ():
        about = _fields(chunk)
        try:
            start, extent = _ints(about.get("offsets")), _ints(about.get("sizes"))
        except TypeError:
            continue
        if len(start) != len(shape) or any(s + n > whole for s, n, whole in zip(start, extent, shape, strict=True)):
            continue
        piece = files.piece(places.get(name, {}).get(start) or places.get(name, {}).get(()), start, extent, dtype)
        if piece is not None:
            pieces.append(piece)
    covered = sum(_count(p.shape) for p in pieces)
    if covered < tensor.numel:
        files.missing.append(name)
    tensor.pieces = tuple(sorted(pieces, key=lambda p: p.start))
    return tensor


def _object(name: str, places: Places, files: _Files) -> Any:
    """A value that is no tensor: a pickle in a file of its own within the rank's file."""
    found = places.get(name)
    return None if not found else files.value(name, next(iter(found.values())))


def _ints(value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**62 for v in value):
        raise TypeError("no sizes")
    return value


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


class _Files:
    """The files of the ranks, opened once each, and what was missing in them."""

    def __init__(self, folder: Path, opened: Opened) -> None:
        self.folder, self.opened = folder, opened
        self.numbers: dict[str, int | None] = {}
        self.sizes: dict[str, int] = {}
        self.missing: list[str] = []
        self.odd: list[str] = []

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for number in self.numbers.values():
            if number is not None:
                os.close(number)

    def _open(self, file: str) -> int | None:
        if file not in self.numbers:
            path = self.folder / file
            inside = path.resolve().is_relative_to(self.folder.resolve())
            try:
                self.numbers[file] = os.open(path, os.O_RDONLY) if inside else None
                if inside:
                    self.sizes[file] = path.stat().st_size
                    self.opened.size += self.sizes[file]
            except OSError:
                self.numbers[file] = None
            if self.numbers[file] is None:
                what = "a file of the checkpoint is missing" if inside else "the metadata name a file outside of the folder; it was not opened"
                self.opened.damage.append(Damage(str(path), what, "every tensor in it"))
        return self.numbers[file]

    def _archive(self, where: tuple[str, int, int]) -> Opened | None:
        file, start, length = where
        number = self._open(file)
        if number is None or start + length > self.sizes[file]:
            return None
        try:
            return torch_zip.read_part(self.folder / file, number, start, length)
        except (CheckpointError, OSError):
            return None

    def piece(self, where: tuple[str, int, int] | None, start: tuple[int, ...], extent: tuple[int, ...], dtype: str) -> Piece | None:
        """The place of a chunk."""
        archive = None if where is None else self._archive(where)
        tensor = None if archive is None else archive.tree
        if not isinstance(tensor, Tensor) or tensor.shape != extent or tensor.dtype != dtype or not tensor.pieces:
            return None
        found = tensor.pieces[0]
        return Piece(found.path, found.offset, extent, start, found.strides, found.swapped)

    def value(self, name: str, where: tuple[str, int, int]) -> Any:
        """The value of an entry that is no tensor."""
        archive = self._archive(where)
        if archive is None:
            self.missing.append(name)
            return None
        self.opened.names = tuple(dict.fromkeys((*self.opened.names, *archive.names)))
        self.opened.calls = tuple(dict.fromkeys((*self.opened.calls, *archive.calls)))
        return archive.tree

    def report(self) -> None:
        """Put what was missing into the damage."""
        for names, what in ((self.missing, "values are missing or cut off in the files of the ranks"), (self.odd, "tensors of an unknown type")):
            if names:
                some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                self.opened.damage.append(Damage(str(self.folder), what, f"{len(names)} values: {some}"))
