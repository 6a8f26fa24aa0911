"""Batches in the ring and on the disk.

A kept batch is a file in the safetensors layout (a JSON header, then raw bytes: nothing is pickled), with its nesting, the
RNG states of its step and what is known of the step in the header's metadata.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

COPIED = 1 << 16
"""Bytes up to which a tensor of the CPU is copied into the ring; copying more would cost a visible part of a step."""
DIGESTED = 1 << 12
"""Bytes of a tensor that are digested: of a larger one evenly spread rows and columns, for hashing all would cost milliseconds."""
ROWS, BLOCKS = 8, 4
"""Rows, and stretches of each, of a larger tensor."""
MAX_LEAVES = 256
"""Tensors of one batch."""
MAX_DEPTH = 8
MAX_TEXT = 10_000
MAX_HEADER = 1 << 24
"""Bytes of the JSON header of a file that is read."""

TO_NAME = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
}  # fmt: skip
FROM_NAME = {short: name for name, short in TO_NAME.items()}
WIDTH = {name: 1 if name == "bool" else int("".join(c for c in name if c.isdigit())) // 8 for name in TO_NAME}


@dataclass(slots=True)
class Leaf:
    """One array of a batch. ``data`` is a copy, or the tensor itself where copying was too dear (``by_reference``)."""

    dtype: str
    shape: tuple[int, ...]
    data: Any
    by_reference: bool
    sample: Any = None
    """What is to be digested, on its way from the device where the tensor lives on one."""
    digest: int | None = None
    """Of the sampled bytes, where they were there at once."""

    def content(self) -> Bytes:
        """All bytes, fetched from the device where needed."""
        return _raw(self.data)


@dataclass(slots=True)
class Batch:
    """A batch as it was given: the nesting, and its arrays by name."""

    structure: object
    leaves: dict[str, Leaf] = field(default_factory=dict)
    size: int = 0
    """Bytes of all arrays."""

    @property
    def on_device(self) -> bool:
        """Whether anything of it is on its way from a CUDA device."""
        return any(leaf.by_reference and getattr(getattr(leaf.data, "device", None), "type", "cpu") == "cuda" for leaf in self.leaves.values())

    def digest(self) -> int:
        """64 bits of shapes and sampled bytes. Call it when the samples have arrived from the device."""
        return _combined((leaf, _hashed(_raw(leaf.sample)) if leaf.digest is None else leaf.digest) for leaf in self.leaves.values())

    def current_digest(self) -> int:
        """The digest of what the arrays hold now: another one, where somebody wrote into a tensor kept by reference."""
        return _combined((leaf, _hashed(_raw(sample(leaf.data)))) for leaf in self.leaves.values())


def take(value: object) -> Batch:
    """A batch for the ring: small arrays copied, large ones and those on a device referred to."""
    batch = Batch(None)
    batch.structure = _walk(value, "batch", batch.leaves, 0)
    batch.size = sum(math.prod(leaf.shape) * WIDTH[leaf.dtype] for leaf in batch.leaves.values())
    return batch


def joined(parts: Sequence[Batch]) -> Batch:
    """The micro-batches of one step as a list."""
    out = Batch({"list": [_renamed(part.structure, place) for place, part in enumerate(parts)]})
    for place, part in enumerate(parts):
        out.leaves.update({f"{place}:{name}": leaf for name, leaf in part.leaves.items()})
    return out


def _renamed(node: Any, place: int) -> object:
    ((kind, content),) = node.items()
    if kind == "array":
        return {"array": f"{place}:{content}"}
    if kind in {"map", "object"}:
        return {kind: {key: _renamed(item, place) for key, item in content.items()}}
    if kind in {"list", "tuple"}:
        return {kind: [_renamed(item, place) for item in content]}
    return {kind: content}


def sample(array: Any) -> Any:
    """The part of an array or tensor that is digested, in one axis; the same whatever its strides and device."""
    count = math.prod(array.shape)
    width = WIDTH[str(array.dtype).removeprefix("torch.")]
    if count * width <= DIGESTED:
        return array.reshape(-1)
    table = array.reshape(array.shape[0], -1) if len(array.shape) > 1 else array.reshape(1, -1)
    every = max(1, table.shape[0] // ROWS)
    rows = len(range(0, table.shape[0], every))
    blocks = min(max(BLOCKS, ROWS * BLOCKS // rows), table.shape[1])
    part = table.shape[1] // blocks
    size = min(part, max(1, DIGESTED // (width * rows * blocks)))
    return table[::every, : part * blocks].reshape(rows, blocks, part)[:, :, :size].reshape(-1)


def _hashed(data: Bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data.data, digest_size=8).digest(), "little")


def _combined(leaves: Iterable[tuple[Leaf, int]]) -> int:
    # The hash of a tuple of integers is the same in every process: only texts and bytes are salted.
    return hash(tuple((*leaf.shape, WIDTH[leaf.dtype], digest) for leaf, digest in leaves)) & (2**64 - 1) or 1


def _walk(value: object, name: str, leaves: dict[str, Leaf], depth: int) -> object:
    if value is None or isinstance(value, (bool, int)):
        return {"value": value}
    if isinstance(value, float):
        return {"value": value if math.isfinite(value) else repr(value)}
    if isinstance(value, str):
        return {"value": value[:MAX_TEXT]}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _array(value, name, leaves)
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {"map": {str(key): _walk(item, f"{name}.{key}", leaves, depth + 1) for key, item in value.items()}}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_walk(v, f"{name}.{i}", leaves, depth + 1) for i, v in enumerate(value)]}
    if depth < MAX_DEPTH and (is_dataclass(value) or hasattr(value, "__dict__")) and not isinstance(value, type):
        return {"object": {key: _walk(item, f"{name}.{key}", leaves, depth + 1) for key, item in vars(value).items()}}
    return {"unknown": type(value).__name__}


def _array(value: Any, name: str, leaves: dict[str, Leaf]) -> object:
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in WIDTH or len(leaves) >= MAX_LEAVES:
        return {"unknown": dtype}
    shape = tuple(int(n) for n in value.shape)
    leaves[name] = _numpy_leaf(value, dtype, shape) if isinstance(value, (np.ndarray, np.generic)) else _torch_leaf(value, dtype, shape)
    return {"array": name}


def _numpy_leaf(value: Any, dtype: str, shape: tuple[int, ...]) -> Leaf:
    array = np.asarray(value)
    if array.nbytes <= COPIED:
        copy = array.copy()
        return Leaf(dtype, shape, copy, by_reference=False, digest=_hashed(_raw(sample(copy))))
    return Leaf(dtype, shape, array, by_reference=True, digest=_hashed(_raw(sample(array))))


def _torch_leaf(value: Any, dtype: str, shape: tuple[int, ...]) -> Leaf:
    tensor = value.detach()
    on_cpu = tensor.device.type == "cpu"
    if on_cpu and dtype != "bfloat16" and not (tensor.is_conj() or tensor.is_neg()):
        return _numpy_leaf(tensor.numpy(), dtype, shape)
    if on_cpu and tensor.element_size() * tensor.numel() <= COPIED:
        tensor = tensor.clone()
        return Leaf(dtype, shape, tensor, by_reference=False, sample=sample(tensor))
    return Leaf(dtype, shape, tensor, by_reference=True, sample=on_its_way(sample(tensor)))


def on_its_way(tensor: Any) -> Any:
    """A copy on the host. From a CUDA device it arrives later: nothing waits here."""
    if tensor.device.type != "cuda":
        return tensor.to("cpu", copy=True)
    import torch

    tensor = tensor.detach()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)


def _raw(value: Any) -> Bytes:
    """The bytes of an array or tensor, in logical order."""
    if type(value) is np.ndarray and value.dtype == np.uint8 and value.ndim == 1 and value.flags.c_contiguous:
        return value
    if not isinstance(value, np.ndarray):
        import torch

        value = value.to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def encode(batch: Batch, extra: Mapping[str, NDArray[Any]], facts: Mapping[str, object]) -> bytes:
    """The file of a batch: its arrays, those of ``extra``, and ``facts`` as JSON in the metadata."""
    parts: list[tuple[str, str, tuple[int, ...], bytes]] = [
        (name, leaf.dtype, leaf.shape, leaf.content().tobytes()) for name, leaf in batch.leaves.items()
    ]
    parts += [(name, str(array.dtype), array.shape, array.tobytes()) for name, array in extra.items()]
    header: dict[str, object] = {"__metadata__": {"structure": json.dumps(batch.structure), "facts": json.dumps(facts, default=str)}}
    start = 0
    for name, dtype, shape, data in parts:
        header[name] = {"dtype": TO_NAME[dtype], "shape": list(shape), "data_offsets": [start, start + len(data)]}
        start += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(data for *_, data in parts)


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """A batch that was read back. ``arrays`` holds numpy arrays by name, bfloat16 as uint16 (named in ``bfloat16``)."""

    structure: object
    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, object]
    bfloat16: frozenset[str] = frozenset()

    @property
    def rng(self) -> dict[str, NDArray[Any]]:
        """The RNG states at the beginning of the step."""
        return {name: array for name, array in self.arrays.items() if name.startswith("rng.")}

    def value(self, *, tensors: bool = True) -> Any:
        """The batch in its original nesting; objects of classes come back as dictionaries. ``tensors``: PyTorch's, else numpy's."""
        return self._build(self.structure, tensors)

    def _build(self, node: Any, tensors: bool) -> Any:
        ((kind, content),) = node.items()
        if kind == "array":
            return self._tensor(content) if tensors else self.arrays[content]
        if kind in {"map", "object"}:
            return {key: self._build(item, tensors) for key, item in content.items()}
        if kind in {"list", "tuple"}:
            items = [self._build(item, tensors) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "unknown":
            raise ValueError(f"the batch holds a {content}, which the recorder does not keep")
        return content

    def _tensor(self, name: str) -> Any:
        import torch

        tensor = torch.from_numpy(self.arrays[name].copy())
        return tensor.view(torch.bfloat16) if name in self.bfloat16 else tensor


def read_batch(path: Path) -> KeptBatch:
    """Read a kept batch. Raises OSError, and ValueError where the file is damaged or of another kind."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(MAX_HEADER, len(data) - 8):
        raise ValueError(f"{path}: the header is damaged or cut")
    try:
        header = json.loads(data[8 : 8 + size])
        metadata = header.pop("__metadata__")
        structure, facts = json.loads(metadata["structure"]), json.loads(metadata["facts"])
        arrays = {name: _stored(entry, data, 8 + size) for name, entry in header.items()}
        half = frozenset(name for name, entry in header.items() if entry["dtype"] == "BF16")
        kept = KeptBatch(structure, arrays, facts, half)
        _check(structure, arrays, 0)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as problem:
        raise ValueError(f"{path}: no batch of the flight recorder, or damaged ({type(problem).__name__}: {problem})") from problem
    return kept


def _stored(entry: Mapping[str, Any], data: bytes, base: int) -> NDArray[Any]:
    name = FROM_NAME[entry["dtype"]]
    dtype = np.dtype("uint16" if name == "bfloat16" else name)
    start, stop = (int(v) for v in entry["data_offsets"])
    shape: Sequence[int] = [int(n) for n in entry["shape"]]
    count = math.prod(shape)
    if not 0 <= start <= stop <= len(data) - base or min(shape, default=0) < 0 or count * dtype.itemsize != stop - start:
        raise ValueError("an array does not lie where the header says")
    return np.frombuffer(data, dtype=dtype, count=count, offset=base + start).reshape(shape)


def _check(node: object, arrays: Mapping[str, NDArray[Any]], depth: int) -> None:
    if depth > MAX_DEPTH + 1 or not isinstance(node, dict) or len(node) != 1:
        raise ValueError("the nesting is damaged")
    ((kind, content),) = node.items()
    if kind not in {"array", "map", "object", "list", "tuple", "unknown", "value"} or (kind == "array" and content not in arrays):
        raise ValueError("the nesting is damaged")
    if kind in {"map", "object", "list", "tuple"}:
        for item in content.values() if kind in {"map", "object"} else content:
            _check(item, arrays, depth + 1)
