"""Two runs side by side: where they part, which settings differ, and what both did at the same step. ``forensics-compare/1``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

COMPARISON_SCHEMA = "forensics-compare/1"


class DataOrder(StrEnum):
    """Whether both runs saw the same batches at the same steps."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    path: str
    name: str
    first_step: int | None
    last_step: int | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that differs; null where a run does not log it. ``bookkeeping``: names, paths, times, which train nothing."""

    key: str
    a: object
    b: object
    bookkeeping: bool = False


@dataclass(frozen=True, slots=True)
class Parting:
    """How far one signal goes together, on the steps that both runs logged.

    ``first_difference`` is the first step whose values differ at all, null where none does; ``apart_from`` the step from which
    they stay further apart than their noise explains, null where they never do. ``a`` and ``b`` are the levels (medians) after
    that step, ``a_end`` and ``b_end`` those of the last tenth.
    """

    signal: str
    role: str
    shared_points: int
    first_difference: int | None
    apart_from: int | None
    a: float | None
    b: float | None
    a_end: float | None
    b_end: float | None


@dataclass(frozen=True, slots=True)
class SameStep:
    """Events of both runs at one step, or an event of one run (the other id is null) at a step that the other passed calmly.

    ``reading`` says what follows for the cause; ``points_to`` and ``speaks_against`` are ids of causes.
    """

    step: int
    a_event: str | None
    b_event: str | None
    kind: str
    same_batch: bool | None
    reading: str
    points_to: tuple[str, ...] = ()
    speaks_against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The finished comparison. ``chance`` is that of at least so many events at the same steps if the runs had nothing in common."""

    tool_version: str
    a: Side
    b: Side
    verdict: str
    shared_steps: tuple[int, int] | None
    data_order: DataOrder
    data_order_why: str
    partings: tuple[Parting, ...]
    settings: tuple[Difference, ...]
    same_settings: int
    same_steps: tuple[SameStep, ...]
    chance: float | None
    not_checked: tuple[str, ...] = ()
    schema: str = COMPARISON_SCHEMA
