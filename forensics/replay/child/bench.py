"""What an experiment works with: the session, what the faithful replay gave, and how an event is recognised."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from forensics.replay.child.change import FAITHFUL, Change
from forensics.replay.child.microscope import Slide
from forensics.replay.child.session import Session, Snapshot
from forensics.replay.wire import HALF, Request, StepResult, Target, agrees, came_back, disagreement

LEAD = 2
"""Steps before the onset at which a window begins."""

FURTHER = 8
"""Steps after the event over which a calm must last."""

LEFT = 0.1
"""Share of the event's height that may be left where it is called gone."""

FAR = 4.0
"""Or this many robust standard deviations of the calm steps, where they are wider."""

CALM = 12
"""Steps before the event whose replayed level is its baseline."""


@dataclass(slots=True)
class Bench:
    """Filled in as the replay goes on. ``noise`` and ``band`` map a signal to a difference in its unit."""

    session: Session
    request: Request
    noise: dict[str, float] = field(default_factory=lambda: {"loss": 0.0, "grad_norm": 0.0})
    band: dict[str, float] = field(default_factory=lambda: {"loss": 0.0, "grad_norm": 0.0})
    rows: list[StepResult] = field(default_factory=list)
    kept: dict[int, Snapshot] = field(default_factory=dict)
    reproduced: bool | None = None
    parted: int | None = None
    slide: Slide | None = None
    seconds_per_step: float = 0.0

    @property
    def target(self) -> Target:
        """The event."""
        return self.request.target

    @property
    def first(self) -> int:
        """The first step of a window around the event."""
        wanted = self.target.onset - LEAD
        return wanted if wanted in self.kept else min(self.kept)

    def before(self) -> Snapshot:
        """The state before a window around the event, as the faithful replay left it."""
        return self.kept[self.first]

    def baseline(self, rows: Sequence[StepResult]) -> float | None:
        """The level of the signal before the event, in these rows; None where there are too few."""
        calm = [v for r in rows if r.step < self.target.onset - 1 and (v := r.value(self.target.signal)) is not None and math.isfinite(v)]
        return statistics.median(calm[-CALM:]) if len(calm) >= 5 else None

    def window(self, change: Change = FAITHFUL, start: Snapshot | None = None) -> list[StepResult]:
        """The window around the event under a condition, and some steps further."""
        return self.session.run(start or self.before(), min(self.target.last + FURTHER, self.request.last + FURTHER), change)

    def returned(self, rows: Sequence[StepResult]) -> bool:
        """Whether the event is in these rows, or comes a little later than it did."""
        target = self.target
        if target.non_finite is not None:
            return any(not math.isfinite(r.loss) or (r.grad_norm is not None and not math.isfinite(r.grad_norm)) for r in rows)
        return came_back(replace(target, last=target.last + FURTHER), list(rows), self.baseline(self.rows))

    def worst_step(self) -> int:
        """The step of the event at which the signal is furthest from its level, of those whose state was kept."""
        target = self.target
        rows = [
            (r.step, v)
            for r in self.rows
            if r.step in self.kept and target.onset - 1 <= r.step <= target.last + 1 and (v := r.value(target.signal)) is not None
        ]
        level = target.baseline if math.isfinite(target.baseline) else 0.0
        return max(rows, key=lambda x: abs(x[1] - level) if math.isfinite(x[1]) else math.inf, default=(target.onset, 0.0))[0]

    def stands_out_at(self, step: int) -> bool:
        """Whether the event is at this very step of the replay: half its height, or a value that is not finite there or next."""
        target = self.target
        near = [r for r in self.rows if r.step in ((step, step + 1) if target.non_finite is not None else (step,))]
        values = [v for r in near for v in ((r.loss, r.grad_norm) if target.non_finite is not None else (r.value(target.signal),)) if v is not None]
        if target.non_finite is not None or not math.isfinite(target.height):
            return any(not math.isfinite(v) for v in values) or not math.isfinite(target.height)
        level = self.baseline(self.rows)
        level = target.baseline if level is None else level
        return any(not math.isfinite(v) or (v - level if target.height > 0 else level - v) >= HALF * abs(target.height) for v in values)

    def calm(self, rows: Sequence[StepResult]) -> bool:
        """Whether the event is gone: nothing is left of it that stands out of the steps before it."""
        target = self.target
        if target.non_finite is not None or not math.isfinite(target.height):
            return not self.returned(rows)
        before = [v for r in self.rows if r.step < target.onset - 1 and (v := r.value(target.signal)) is not None and math.isfinite(v)][-CALM:]
        level = self.baseline(self.rows)
        level = target.baseline if level is None else level
        spread = 1.4826 * statistics.median(abs(v - level) for v in before) if len(before) >= 5 else 0.0
        allowed = max(LEFT * abs(target.height), FAR * spread)
        values = [v for r in rows if r.step >= target.onset - 1 and (v := r.value(target.signal)) is not None]
        return all(math.isfinite(v) and (v - level if target.height > 0 else level - v) <= allowed for v in values)

    def logged(self, signal: str, step: int) -> float | None:
        """A logged value."""
        return self.request.logged.get(signal, {}).get(step)

    def agrees_at(self, row: StepResult) -> bool:
        """Whether a step gives what the log has, within the band."""
        return all(agrees(self.logged(s, row.step), row.value(s), self.band[s]) for s in ("loss", "grad_norm"))

    def agreement(self, rows: Sequence[StepResult]) -> int | None:
        """The first step that does not give what the log has; None where all do."""
        return next((r.step for r in rows if not self.agrees_at(r)), None)

    def worst(self, rows: Sequence[StepResult], signal: str) -> float:
        """The largest disagreement with the log."""
        return max((disagreement(self.logged(signal, r.step), r.value(signal)) for r in rows), default=0.0)


def shown(rows: Sequence[StepResult]) -> dict[str, list[float | None]]:
    """Curves of a window for the result."""
    return {"steps": [r.step for r in rows], "loss": [r.loss for r in rows], "grad_norm": [r.grad_norm for r in rows]}
