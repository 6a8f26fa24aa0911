"""What the two processes of a replay tell each other: one request as JSON, then JSON lines. Standard library only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

HALF = 0.5
"""Share of the logged height at which an event counts as come back."""

TINY = 1e-6
"""Relative differences below this are rounding, whatever the band says."""

WITHIN = 2.0
"""Disagreements up to this many bands agree: the band is the largest of a few calm steps, not a bound."""


@dataclass(frozen=True, slots=True)
class Target:
    """The event to bring back, in the log's own numbers.

    ``signal`` is loss or grad_norm; ``onset`` to ``last`` the steps judged; ``baseline`` and ``height`` in the signal's unit
    (a negative height is a drop); ``non_finite`` the first step without a finite value. ``kind`` is none where there is no event.
    """

    kind: str
    signal: str
    onset: int
    last: int
    baseline: float = math.nan
    height: float = math.nan
    non_finite: int | None = None

    @property
    def is_event(self) -> bool:
        """Whether there is anything to bring back."""
        return self.kind != "none"

    @property
    def has_height(self) -> bool:
        """Whether the event can be seen in one curve alone; a restart may only show as a parting of two."""
        return self.non_finite is not None or math.isfinite(self.height)


@dataclass(frozen=True, slots=True)
class State:
    """A checkpoint to start from. ``step`` is the next step to take after loading it."""

    path: str
    step: int


@dataclass(frozen=True, slots=True)
class Request:
    """Everything the child is told.

    ``logged`` maps role -> {step: value} for the steps of the replay; ``resumed`` is the step at which the run was resumed
    close to the event; ``clip`` what the configuration says where the recipe says nothing.
    """

    recipe: str
    name: str
    run_dir: str
    config: Mapping[str, Any]
    device: str
    target: Target
    start: State
    last: int
    earlier: State | None = None
    at_resume: State | None = None
    after: State | None = None
    resumed: int | None = None
    logged: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    clip: float | None = None
    experiments: tuple[str, ...] = ()
    threads: int | None = None
    paths: tuple[str, ...] = ()

    def to_json(self) -> str:
        """As JSON text; NaN and infinities stay as Python writes them."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Request:
        """Back from JSON text."""
        raw = json.loads(text)
        states = {k: State(**raw[k]) if raw[k] else None for k in ("start", "earlier", "at_resume", "after")}
        logged = {role: {int(s): float(v) for s, v in rows.items()} for role, rows in raw["logged"].items()}
        raw |= states | {"logged": logged, "target": Target(**raw["target"]), "experiments": tuple(raw["experiments"]), "paths": tuple(raw["paths"])}
        return Request(**raw)


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of a replay. ``extra`` holds what else the recipe's own step returned."""

    step: int
    loss: float
    grad_norm: float | None
    lr: float | None = None
    seconds: float = 0.0
    extra: Mapping[str, float] = field(default_factory=dict)

    def value(self, signal: str) -> float | None:
        """The value of a signal of the log."""
        return self.loss if signal == "loss" else self.grad_norm


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one experiment gave. ``result`` is plain data; ``reading`` what it means, in a sentence.

    ``returned`` says whether the event came (back) under the experiment's condition, None where the question makes no sense.
    """

    id: str
    what: str
    result: Mapping[str, Any]
    reading: str
    returned: bool | None = None
    calm_with: str | None = None


def message(kind: str, /, **fields: Any) -> str:
    """One line for the results file."""
    return json.dumps({"message": kind, **fields}, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} does not go over the wire")


def came_back(target: Target, rows: list[StepResult] | tuple[StepResult, ...], baseline: float | None = None) -> bool:
    """Whether the event is in these steps: at its step (give or take one) and at least half as high, or the same non-finite value.

    ``baseline`` replaces the logged one where the state is another.
    """
    window = [r for r in rows if target.onset - 1 <= r.step <= target.last + 1]
    if target.non_finite is not None:
        bad = [r.step for r in rows if not math.isfinite(r.loss) or (r.grad_norm is not None and not math.isfinite(r.grad_norm))]
        return bool(bad) and abs(bad[0] - target.non_finite) <= 1
    level = target.baseline if baseline is None else baseline
    values = [v for r in window if (v := r.value(target.signal)) is not None]
    if any(not math.isfinite(v) for v in values):
        return True
    if not values or not math.isfinite(target.height):
        return False
    reached = max(values) - level if target.height > 0 else level - min(values)
    return reached >= HALF * abs(target.height)


def disagreement(logged: float | None, replayed: float | None) -> float:
    """Absolute difference; 0 where both are the same non-finite value or one was not logged, infinite where only one is finite."""
    if logged is None or replayed is None:
        return 0.0
    if math.isfinite(logged) and math.isfinite(replayed):
        return abs(logged - replayed)
    return 0.0 if math.isfinite(logged) == math.isfinite(replayed) else math.inf


def agrees(logged: float | None, replayed: float | None, band: float) -> bool:
    """Whether two values are the same within the band."""
    scale = abs(logged) if logged is not None and math.isfinite(logged) else 1.0
    return disagreement(logged, replayed) <= WITHIN * band + TINY * max(scale, 1e-12)
