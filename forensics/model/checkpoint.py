"""A checkpoint as it was written: where training stood, the optimizer's settings, and where every tensor lies.

Nothing here holds numbers of tensors: a TensorInfo says where they are, so that a checkpoint larger than memory is no
larger here than its list of names. No numpy: the facts of a checkpoint are read faster than numpy is loaded.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True, slots=True)
class TensorChange:
    """How one tensor changed.

    ``change`` is the L2 norm of the difference over finite elements; ``unchanged`` counts elements that are equal to the
    last bit; ``jump`` is one element that grew far more than all others moved (``usual``), ``was`` its value before.
    """

    name: str
    kind: TensorKind
    elements: int
    norm_before: float
    norm_after: float
    change: float
    unchanged: int
    largest: float
    largest_at: tuple[int, ...] | None
    non_finite_before: int
    non_finite_after: int
    jump: Outlier | None = None
    was: float | None = None

    @property
    def relative(self) -> float:
        """Change over the norm before; infinite where that was zero."""
        if self.norm_before:
            return self.change / self.norm_before
        return math.inf if self.change else 0.0

    @property
    def still(self) -> bool:
        """Not one bit moved."""
        return self.unchanged == self.elements


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with one tensor, in words; ``index`` names the element where it is one."""

    name: str
    kind: TensorKind
    text: str
    index: tuple[int, ...] | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Inspected:
    """A checkpoint of a run with what its numbers say.

    ``stats`` is None where the numbers were not read, and ``unread`` says why. ``changes`` are those of the parameters
    since the checkpoint of step ``since``.
    """

    checkpoint: Checkpoint
    stats: Mapping[tuple[str, TensorKind], TensorStats] | None = None
    faults: tuple[Fault, ...] = ()
    changes: tuple[TensorChange, ...] | None = None
    since: int | None = None
    damage: tuple[Damage, ...] = ()
    unread: str = ""

    @property
    def step(self) -> int | None:
        """Steps taken when it was saved."""
        return self.checkpoint.step

    @property
    def good(self) -> bool | None:
        """Fit to resume from, by its numbers; None where they were not read."""
        if self.checkpoint.damage or self.damage or self.faults:
            return False
        return None if self.stats is None else True
