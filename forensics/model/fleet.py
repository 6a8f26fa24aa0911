"""Many runs in one table, and what those that went wrong have in common. ``forensics-sweep/1``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FLEET_SCHEMA = "forensics-sweep/1"


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """An alarm of one run. ``cause`` null: undetermined, or no cause fits. ``batch_id`` of the onset, where logged."""

    id: str
    kind: str
    severity: str
    onset_step: int
    cause: str | None
    score: float | None
    batch_id: int | float | str | None = None


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run. ``problem`` says why it could not be analysed; ``events`` are its alarms; ``calm`` counts those that are only info.

    ``counted_ids``: the batch ids only count steps, so that equal ids of two runs say nothing.
    """

    path: str
    name: str
    verdict: str = ""
    problem: str = ""
    first_step: int | None = None
    last_step: int | None = None
    points: int = 0
    events: tuple[FleetEvent, ...] = ()
    calm: int = 0
    damage: int = 0
    counted_ids: bool = False
    steps_logged: int = 0
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommonCause:
    """A cause named first in several runs."""

    cause: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedBatch:
    """A batch at which several runs broke. ``p_value`` is the chance of that for any batch, if batches did not matter."""

    batch_id: int | float | str
    runs: tuple[str, ...]
    steps: tuple[int, ...]
    p_value: float


@dataclass(frozen=True, slots=True)
class SharedStep:
    """A step at which several runs broke, and the chance of that for any step."""

    step: int
    runs: tuple[str, ...]
    p_value: float


@dataclass(frozen=True, slots=True)
class TellingSetting:
    """A setting whose value goes with trouble: ``bad_with`` of the ``with_it`` runs that have it went wrong.

    Of the ``without_it`` others it was ``bad_without``. ``p_value``: Fisher's exact test, times the number of tests made.
    """

    key: str
    value: object
    bad_with: int
    with_it: int
    bad_without: int
    without_it: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """The finished sweep, runs in the order they were found."""

    tool_version: str
    path: str
    verdict: str
    runs: tuple[FleetRun, ...]
    causes: tuple[CommonCause, ...] = ()
    batches: tuple[SharedBatch, ...] = ()
    steps: tuple[SharedStep, ...] = ()
    settings: tuple[TellingSetting, ...] = ()
    not_checked: tuple[str, ...] = ()
    schema: str = FLEET_SCHEMA
