"""A checkpoint as it was written: where training stood, the optimizer's settings, and where every tensor lies.

Nothing here holds numbers of tensors: a TensorInfo says where they are, so that a checkpoint larger than memory is no
larger here than its list of names. No numpy: the facts of a checkpoint are read faster than numpy is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from forensics.model.damage import Damage


class TensorKind(StrEnum):
    """What a tensor is for. Moments carry the name of the parameter they belong to."""

    PARAM = "param"
    EXP_AVG = "exp_avg"
    EXP_AVG_SQ = "exp_avg_sq"
    BUFFER = "buffer"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of a tensor in a file.

    ``offset`` is where its first element lies, in bytes; ``start`` where the block begins in the whole tensor, and
    ``shape`` how large it is; ``strides`` in elements, None where the block is contiguous; ``data`` the bytes themselves
    where they are not in a file of their own (numbers inside a pickle).
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    start: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    swapped: bool = False
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor of a checkpoint. ``location`` is empty where its bytes are missing; ``key`` is its place in the file."""

    name: str
    kind: TensorKind
    shape: tuple[int, ...]
    dtype: str
    location: tuple[Piece, ...] = ()
    key: str = ""

    @property
    def numel(self) -> int:
        """Number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total


@dataclass(frozen=True, slots=True)
class Outlier:
    """An element far outside its tensor. ``index`` is its place; ``usual`` the largest magnitude among the others.

    ``bit`` is the bit (0 the lowest) whose flip alone would make the value a usual one again, ``unflipped`` that value;
    both None where no single bit explains it.
    """

    index: tuple[int, ...]
    value: float
    usual: float
    bit: int | None = None
    unflipped: float | None = None


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Numbers of one tensor. ``norm`` (L2) and ``max_abs`` are of its finite elements; ``first_bad`` is the first other one."""

    elements: int
    norm: float
    max_abs: float
    non_finite: int
    zeros: int
    outliers: tuple[Outlier, ...] = ()
    first_bad: tuple[int, ...] | None = None

    @property
    def rms(self) -> float:
        """Root mean square of the finite elements."""
        count = self.elements - self.non_finite
        return float(self.norm / count**0.5) if count else 0.0


@dataclass(frozen=True, slots=True)
class ParamGroup:
    """Settings of one group of parameters, as the optimizer saved them; ``more`` holds the other ones."""

    lr: float | None = None
    betas: tuple[float, ...] | None = None
    eps: float | None = None
    weight_decay: float | None = None
    params: tuple[str, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything of a checkpoint but the numbers in its tensors.

    ``step`` is the number of steps taken, as the file says, and ``step_from`` where it says so; ``optimizer_steps`` are
    the lowest and highest step count in the optimizer's own state; ``rng`` names the generators whose state is there;
    ``classes`` are the Python classes that the file names and that were not made; ``findings`` say what the file would
    have done had it been loaded without protection.
    """

    path: str
    format: str
    step: int | None = None
    step_from: str = ""
    optimizer_steps: tuple[int, int] | None = None
    param_groups: tuple[ParamGroup, ...] = ()
    scaler: Mapping[str, object] | None = None
    scheduler: Mapping[str, object] | None = None
    rng: tuple[str, ...] = ()
    loader: Mapping[str, object] | None = None
    tensors: tuple[TensorInfo, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    files: tuple[str, ...] = ()
    size: int = 0

    def tensor(self, name: str, kind: TensorKind = TensorKind.PARAM) -> TensorInfo | None:
        """The tensor of this name and kind."""
        return next((t for t in self.tensors if t.name == name and t.kind == kind), None)
