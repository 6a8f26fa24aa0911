"""States of the random generators: captured at every step, digested, and put back by a replay.

A capture must cost microseconds. The twisters of Python and numpy are read where they lie in memory, after a look at whether
what lies there is what their owners hand out; otherwise the owners are asked.
"""

from __future__ import annotations

import ctypes
import random
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = 624
"""Words of a Mersenne twister; its position is one more."""
TOLD = 64
"""Bytes of a state that are digested: the position, and words that change with every block drawn."""
HEADER = 16
"""Bytes before the fields of an object of CPython; where it is another number, the check fails and the slow way is taken."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class NumpyState:
    """What numpy's global generator hands out, and a digest of it."""

    state: Mapping[str, Any]
    digest: int


@dataclass(slots=True)
class RngState:
    """States of Python's, numpy's and PyTorch's global generators. ``python`` is (position, words) as uint32 bytes."""

    python: bytes
    gauss: float | None
    numpy: NumpyState
    torch: Any = None
    cuda: Any = None
    digest: int = 0
    """64 bits that differ between generators of another seed or position."""

    def arrays(self) -> Arrays:
        """The states as plain arrays, by name."""
        words = np.frombuffer(self.python, dtype=np.uint32).astype(np.int64)
        out: dict[str, NDArray[Any]] = {"rng.python": np.append(words[1:], words[0])}
        if self.gauss is not None:
            out["rng.python_gauss"] = np.array([self.gauss], dtype=np.float64)
        state = self.numpy.state
        if state["bit_generator"] == "MT19937":
            out["rng.numpy"] = state["state"]["key"].astype(np.int64)
            out["rng.numpy_at"] = np.array([state["state"]["pos"], state["has_gauss"]], dtype=np.int64)
            out["rng.numpy_gauss"] = np.array([state["gauss"]], dtype=np.float64)
        for name, tensor in (("rng.torch", self.torch), ("rng.cuda", self.cuda)):
            if tensor is not None:
                out[name] = tensor.numpy()
        return out


def capture(last: RngState | None = None) -> RngState:
    """The states as they stand; ``last`` is the capture before, of which numpy's state is taken over where it did not move.

    PyTorch's are taken only where the process has loaded PyTorch, CUDA's only where it is in use.
    """
    torch, cpu, cuda = sys.modules.get("torch"), None, None
    if torch is not None:
        cpu = torch.default_generator.get_state()
        if torch.cuda.is_initialized():
            cuda = torch.cuda.get_rng_state()
    view = _python_words()
    python = bytes(view) if view is not None else _asked()
    known = _numpy() if last is None or _numpy_moved(last.numpy.state) else last.numpy
    tensors = [0 if tensor is None else zlib.crc32(tensor.numpy()[:TOLD]) for tensor in (cpu, cuda)]
    # The hash of a tuple of integers is the same in every process: only texts and bytes are salted.
    digest = hash((zlib.crc32(python[:TOLD]), known.digest, *tensors)) & (2**64 - 1) or 1
    return RngState(python, random._inst.gauss_next, known, cpu, cuda, digest)  # type: ignore[attr-defined]


def restore(arrays: Arrays) -> tuple[str, ...]:
    """Put back the states of ``RngState.arrays``; the names of those that this machine has no generator for.

    Raises ValueError, TypeError or RuntimeError on states that do not fit.
    """
    if "rng.python" in arrays:
        gauss = arrays.get("rng.python_gauss")
        random.setstate((3, tuple(int(w) for w in arrays["rng.python"]), None if gauss is None else float(gauss[0])))
    if "rng.numpy" in arrays:
        position, has_gauss = (int(v) for v in arrays["rng.numpy_at"])
        np.random.set_state(("MT19937", arrays["rng.numpy"].astype(np.uint32), position, has_gauss, float(arrays["rng.numpy_gauss"][0])))
    if not {"rng.torch", "rng.cuda"} & arrays.keys():
        return ()
    import torch

    if "rng.torch" in arrays:
        torch.set_rng_state(torch.from_numpy(np.array(arrays["rng.torch"], dtype=np.uint8)))
    if "rng.cuda" in arrays and not torch.cuda.is_available():
        return ("rng.cuda",)
    if "rng.cuda" in arrays:
        torch.cuda.set_rng_state(torch.from_numpy(np.array(arrays["rng.cuda"], dtype=np.uint8)))
    return ()


def _asked() -> bytes:
    words = random.getstate()[1]
    return np.array((words[WORDS], *words[:WORDS]), dtype=np.uint32).tobytes()


@lru_cache(maxsize=1)
def _python_words() -> Any:
    """Position and words of Python's global generator where they lie; None where they do not lie where they should."""
    inst = random._inst
    if sys.implementation.name != "cpython" or type(inst).__basicsize__ < HEADER + 4 * (WORDS + 1):
        return None
    view = (ctypes.c_uint32 * (WORDS + 1)).from_address(id(inst) + HEADER)
    return view if bytes(view) == _asked() else None


def _numpy() -> NumpyState:
    state: Any = np.random.get_state(legacy=False)
    key = state["state"].get("key")
    parts = [int(key[0]), int(key[1]), int(key[WORDS - 1]), state["state"]["pos"], state["has_gauss"]] if key is not None else []
    return NumpyState(state, hash(tuple(parts)))


def _numpy_moved(last: Mapping[str, Any]) -> bool:
    """Whether numpy's global generator may have drawn: asking for its state takes ten times as long as looking at it.

    A second normal deviate that is still held back can be drawn without a move, so then the answer is yes.
    """
    if last["has_gauss"] != 0 or last["bit_generator"] != "MT19937":
        return True
    view = _numpy_words(np.random.mtrand._rand._bit_generator)
    key = last["state"]["key"]
    return bool(view[WORDS] != last["state"]["pos"] or view[0] != key[0] or view[WORDS - 1] != key[WORDS - 1])


@lru_cache(maxsize=1)
def _numpy_words(generator: Any) -> Any:
    """Words and position of a generator of numpy where they lie, by numpy's own interface for C."""
    return (ctypes.c_uint32 * (WORDS + 1)).from_address(generator.ctypes.state_address)
