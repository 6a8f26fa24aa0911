"""What the names in a PyTorch pickle stand for: tensors, storages, and numpy's arrays, none of which is made."""

from __future__ import annotations

import struct
from typing import Any

from forensics.parsers.checkpoints.safe_pickle import Global, Made, Meaning
from forensics.parsers.checkpoints.tree import ITEM_BYTES, Storage, Tensor

STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "UntypedStorage": None,
}
"""Storage classes and the type of their elements."""

MAX_DIMENSIONS = 64

NUMPY_TYPES = {
    "f8": "float64",
    "f4": "float32",
    "f2": "float16",
    "i8": "int64",
    "i4": "int32",
    "i2": "int16",
    "i1": "int8",
    "u8": "uint64",
    "u4": "uint32",
    "u2": "uint16",
    "u1": "uint8",
    "b1": "bool",
}
STRUCT = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H", "u1": "B", "b1": "?"}
"""numpy's short names of types -> ours, and those of the struct module."""


def storage_dtype(name: str) -> str | None:
    """Type of the elements of a storage class; None where the tensor says it. Raises ValueError for an unknown class."""
    short = name.rpartition(".")[2]
    if short not in STORAGES:
        raise ValueError(f"unknown storage {name}")
    return STORAGES[short]


def persistent_storage(key: Any) -> Storage:
    """A storage from its persistent id ``("storage", class, key, device, numel[, view])``. Raises ValueError."""
    if not isinstance(key, tuple) or len(key) < 5 or key[0] != "storage" or not isinstance(key[1], Global):
        raise ValueError("a persistent id that is no storage")
    dtype = storage_dtype(key[1].name)
    numel = _count(key[4])
    offset = 0
    name = str(key[2])[:200]
    if len(key) > 5 and isinstance(key[5], tuple) and len(key[5]) == 3:
        offset = _count(key[5][1]) * ITEM_BYTES[dtype or "uint8"]
    return Storage(name, dtype, numel, str(key[3])[:40], offset)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError(f"{value!r:.40} is no size")
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    sizes = tuple(_count(v) for v in value)
    if len(sizes) > MAX_DIMENSIONS:
        raise ValueError(f"{len(sizes)} dimensions")
    return sizes


def _tensor(args: tuple[Any, ...], dtype: str | None = None) -> Tensor:
    storage = args[0]
    if not isinstance(storage, Storage):
        raise TypeError("a tensor without a storage")
    known = dtype or storage.dtype
    if known is None:
        raise ValueError("a tensor without a type")
    shape, strides = _sizes(args[2]), _sizes(args[3])
    if len(shape) != len(strides):
        raise ValueError("sizes and strides of different lengths")
    return Tensor(storage, known, shape, strides, _count(args[1]))


def _tensor_v3(args: tuple[Any, ...]) -> Tensor:
    """``(storage, offset, size, stride, requires_grad, hooks, dtype, ...)``."""
    return _tensor(args, dtype_name(args[6]))


def dtype_name(value: Any) -> str:
    """``torch.float32`` -> ``float32``. Raises ValueError where it is no type of elements."""
    name = value.name.removeprefix("torch.") if isinstance(value, Global) else ""
    if name not in ITEM_BYTES:
        raise ValueError(f"{value!r:.60} is no type of elements")
    return name


def _parameter(args: tuple[Any, ...]) -> Any:
    if isinstance(args[0], Tensor):
        args[0].parameter = True
    return args[0]


def _rebuilt_from_type(args: tuple[Any, ...]) -> Any:
    """``(function, type, args, state)``: the function is one of the ones here, and is asked by name."""
    target = args[0]
    if isinstance(target, Global) and target.name in MEANINGS and isinstance(args[2], tuple):
        return MEANINGS[target.name](args[2])
    return Made("torch._tensor._rebuild_from_type_v2", args)


def _reconstruct(_: tuple[Any, ...]) -> NumpyArray:
    return NumpyArray()


def _dtype(args: tuple[Any, ...]) -> NumpyType:
    return NumpyType(str(args[0])[:20])


def _scalar(args: tuple[Any, ...]) -> Any:
    """A numpy number: its type and its bytes."""
    kind, data = args
    code = kind.code
    return struct.unpack(("<" if kind.little else ">") + STRUCT[code], data)[0]


class NumpyType:
    """A numpy dtype by name."""

    __slots__ = ("code", "little")

    def __init__(self, code: str) -> None:
        self.code = code.lstrip("<>|=")
        self.little = not code.startswith(">")

    def set_state(self, state: Any) -> None:
        """The byte order is the second entry of the state."""
        if isinstance(state, tuple) and len(state) > 1:
            self.little = state[1] != ">"


class NumpyArray(Tensor):
    """A numpy array inside the pickle: its numbers are in the state that is set on it."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, "uint8", (0,), (1,))

    def set_state(self, state: object) -> None:
        """``(version, shape, dtype, fortran order, bytes)``."""
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], NumpyType) or not isinstance(state[4], bytes):
            return
        dtype = NUMPY_TYPES.get(state[2].code)
        shape = _sizes(state[1])
        if dtype is None:
            return
        self.dtype, self.shape, self.data, self.swapped = dtype, shape, state[4], not state[2].little
        order = range(len(shape)) if state[3] else reversed(range(len(shape)))
        strides, step = [0] * len(shape), 1
        for axis in order:
            strides[axis] = step
            step *= max(shape[axis], 1)
        self.strides = tuple(strides)
        if self.numel * ITEM_BYTES[dtype] != len(state[4]):
            self.shape, self.strides, self.data = (0,), (1,), None


def _names() -> dict[str, Meaning]:
    names: dict[str, Meaning] = {
        "torch._utils._rebuild_tensor": _tensor,
        "torch._utils._rebuild_tensor_v2": _tensor,
        "torch._utils._rebuild_tensor_v3": _tensor_v3,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter,
        "torch._tensor._rebuild_from_type": _rebuilt_from_type,
        "torch._tensor._rebuild_from_type_v2": _rebuilt_from_type,
        "numpy.dtype": _dtype,
    }
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        names[f"{module}._reconstruct"] = _reconstruct
        names[f"{module}.scalar"] = _scalar
    return names


MEANINGS = _names()
