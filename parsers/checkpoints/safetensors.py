"""safetensors: the length of a JSON header, the header with the place of every tensor, then the numbers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from forensics.model.checkpoint import Piece
from forensics.model.damage import Damage
from forensics.parsers.checkpoints.opened import CheckpointError, Opened
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Tensor

NAME = "safetensors"

MAX_HEADER_BYTES = 100_000_000
"""The bound of the format itself."""

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
"""Types of elements, by the format's names."""


def is_mine(head: bytes, size: int) -> bool:
    """Whether a file begins like one: a length that fits, and an opening brace."""
    if len(head) < 9 or head[8:9] != b"{":
        return False
    return int(struct.unpack("<Q", head[:8])[0]) <= max(MAX_HEADER_BYTES, size)


def read(path: Path) -> Opened:
    """Read the header. Raises CheckpointError where it is broken, OSError where the file cannot be read."""
    opened = Opened(path, NAME, size=path.stat().st_size)
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > MAX_HEADER_BYTES or 8 + length > opened.size:
            raise CheckpointError(f"its header has {length} bytes by its own account, the file {opened.size}: it is cut off or damaged")
        text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"its header is no JSON: {str(problem)[:120]}") from problem
    if not isinstance(header, dict):
        raise CheckpointError("its header is no JSON object")
    meta = header.pop("__metadata__", None)
    if isinstance(meta, dict):
        opened.facts.update({str(k)[:200]: str(v)[:1000] for k, v in meta.items()})
    tree: dict[str, Tensor] = {}
    outside, odd = [], []
    for name, entry in header.items():
        tensor = _tensor(path, entry, 8 + length, opened.size)
        if tensor is None:
            odd.append(name)
            continue
        if not tensor.pieces:
            outside.append(name)
        tree[name] = tensor
    for names, what in ((outside, "tensors lie outside of the file: it is cut off"), (odd, "entries of the header that describe no tensor")):
        if names:
            some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            opened.damage.append(Damage(str(path), what, f"{len(names)} tensors: {some}"))
    opened.tree = tree
    return opened


def _tensor(path: Path, entry: Any, base: int, size: int) -> Tensor | None:
    """A tensor with its place (none where it is past the end of the file); None where the entry is malformed."""
    if not isinstance(entry, dict):
        return None
    dtype, sizes, offsets = DTYPES.get(str(entry.get("dtype"))), _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
    if dtype is None or sizes is None or offsets is None or len(offsets) != 2:
        return None
    tensor = Tensor(None, dtype, sizes, ())
    if offsets[1] - offsets[0] != tensor.numel * ITEM_BYTES[dtype]:
        return None
    inside = base + offsets[1] <= size
    tensor.pieces = (Piece(str(path), base + offsets[0], sizes, (0,) * len(sizes)),) if inside else ()
    return tensor


def _sizes(value: Any) -> tuple[int, ...] | None:
    fits = isinstance(value, list) and len(value) <= 64 and all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**62 for v in value)
    return tuple(value) if fits else None
