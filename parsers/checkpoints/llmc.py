"""llm.c: ``model_00000100.bin`` with the weights of a GPT-2, ``state_00000100_00000.bin`` per process with Adam's moments.

Both begin with 256 integers; the tensors follow without names, in a fixed order, the moments flat in the same order. Where
several processes share the moments (ZeRO 1), every tensor is cut into equal shares.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from forensics.model.checkpoint import Piece
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import CheckpointError, Opened
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Tensor

NAME = "llm.c"

HEADER = struct.Struct("<256i")
MODEL, STATE = 20240326, 20240527
"""First integers of the two kinds of files."""

VERSIONS = {1: "float32", 2: "bfloat16", 3: "float32", 5: "bfloat16"}
"""Version of a model file -> type of its numbers."""

MODEL_FILE = re.compile(r"^model_(\d+)\.bin$")

MAX_SIZE = 1 << 24
"""Layers, channels and words of a header that is no accident."""


def read(path: Path) -> Opened:
    """Read a model file with the state files beside it, or a state file alone. Raises CheckpointError where the header is broken."""
    header = _header(path)
    if header[0] == STATE:
        opened = Opened(path, NAME, size=path.stat().st_size)
        opened.tree = _about(header)
        return opened
    dtype = VERSIONS.get(header[1])
    if dtype is None:
        raise CheckpointError(f"version {header[1]} of an llm.c model is unknown")
    opened = Opened(path, NAME, size=path.stat().st_size)
    tensors: dict[str, Tensor] = {}
    at, short = HEADER.size, []
    shapes = _shapes(header)
    for name, shape in shapes.items():
        tensor = Tensor(None, dtype, shape, ())
        end = at + tensor.numel * ITEM_BYTES[dtype]
        inside = end <= opened.size
        tensor.pieces = (Piece(str(path), at, shape, (0,) * len(shape)),) if inside else ()
        short += [] if inside else [name]
        tensors[name] = tensor
        at = end
    if short:
        opened.damage.append(Damage(str(path), "the file ends before its tensors do", f"{len(short)} tensors: {', '.join(short[:5])}"))
    opened.tree = {"model": tensors, **_states(path, shapes, opened)}
    return opened


def _header(path: Path) -> tuple[int, ...]:
    with path.open("rb") as file:
        data = file.read(HEADER.size)
    if len(data) < HEADER.size:
        raise CheckpointError("its header is cut off")
    return tuple(HEADER.unpack(data))


def _shapes(header: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    positions, words, layers, _, width, padded = header[2:8]
    padded = padded or words
    if not all(0 < n < MAX_SIZE for n in (positions, layers, width, padded)):
        raise CheckpointError("its header has sizes that no model has")
    return {
        "wte": (padded, width),
        "wpe": (positions, width),
        "ln1w": (layers, width),
        "ln1b": (layers, width),
        "qkvw": (layers, 3 * width, width),
        "qkvb": (layers, 3 * width),
        "attprojw": (layers, width, width),
        "attprojb": (layers, width),
        "ln2w": (layers, width),
        "ln2b": (layers, width),
        "fcw": (layers, 4 * width, width),
        "fcb": (layers, 4 * width),
        "fcprojw": (layers, width, 4 * width),
        "fcprojb": (layers, width),
        "lnfw": (width,),
        "lnfb": (width,),
    }


def _about(header: tuple[int, ...]) -> dict[str, object]:
    (sample,) = struct.unpack("<q", struct.pack("<2i", *header[32:34]))
    (shard,) = struct.unpack("<q", struct.pack("<2i", *header[30:32]))
    return {"step": header[10], "rng_state": {"model": header[20]}, "sampler": {"shard": shard, "sample": sample, "shuffled": bool(header[5])}}


def _states(path: Path, shapes: dict[str, tuple[int, ...]], opened: Opened) -> dict[str, object]:
    """The state files of the same step: the step, generators, and the moments as pieces of every process's file."""
    match = MODEL_FILE.match(path.name)
    files = sorted(path.parent.glob(f"state_{match[1]}_*.bin")) if match else []
    if not files:
        return {}
    headers = _headers(files, opened)
    if not headers:
        return {}
    count = max(1, headers[0].words[2])
    total = sum(_count(s) for s in shapes.values())
    if len(headers) != count:
        opened.damage.append(Damage(str(path.parent), "state files of some processes are missing", f"{count - len(headers)} of {count} files"))
    state: dict[str, dict[str, Tensor]] = {n: {} for n in shapes}
    for slot, number in (("exp_avg", 0), ("exp_avg_sq", 1)):
        pieces: dict[str, list[Piece]] = {n: [] for n in shapes}
        for one in headers:
            share = _share(one, total, count)
            if share:
                _add(pieces, shapes, one, HEADER.size + number * share * 4, count if share < total else 1)
            if share == total:
                break
        for name, shape in shapes.items():
            tensor = Tensor(None, "float32", shape, ())
            tensor.pieces = tuple(pieces[name])
            if sum(p.shape[0] for p in pieces[name]) == tensor.numel:
                state[name][slot] = tensor
    return {**_about(headers[0].words), "optimizer": {"state": state, "param_groups": [{"params": list(shapes)}]}}


@dataclass(frozen=True, slots=True)
class _State:
    """The state file of one process: its rank and header."""

    rank: int
    path: Path
    words: tuple[int, ...]


def _headers(files: list[Path], opened: Opened) -> list[_State]:
    found = []
    for file in files[:65536]:
        try:
            words = _header(file)
        except CheckpointError as problem:
            opened.damage.append(Damage(str(file), str(problem), "the moments in it"))
            continue
        if words[0] == STATE:
            found.append(_State(words[3], file, words))
            opened.size += file.stat().st_size
    return sorted(found, key=lambda s: s.rank)


def _share(one: _State, total: int, count: int) -> int:
    """Elements of each moment in a state file: all of them, or one process's share; 0 where the file is too short for either."""
    arrays = 3 if one.words[4] else 2
    size = (one.path.stat().st_size - HEADER.size) // 4
    for share in (total, total // count):
        if size >= arrays * share:
            return share
    return 0


def _add(pieces: dict[str, list[Piece]], shapes: dict[str, tuple[int, ...]], one: _State, at: int, count: int) -> None:
    """The pieces of one process, from byte ``at`` on: its share of every tensor one after another."""
    for name, shape in shapes.items():
        share = _count(shape) // count
        start = one.rank * share if count > 1 else 0
        pieces[name].append(Piece(str(one.path), at, (share,), (start,)))
        at += share * 4


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
