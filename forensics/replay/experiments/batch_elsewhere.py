"""R2: the event's batches on an earlier, healthy state."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from forensics.replay.child.bench import LEAD, Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome, StepResult, came_back

ID, WHAT = "R2", "the event's batches on an earlier state"

WARM = 8
"""Own batches that an earlier state takes first, for its level."""

FAR, LEAST = 8.0, 0.15
"""A state that has learned less is surprised less: a rise of so many robust standard deviations of its own batches counts, if it is
at least this share of the event's height."""

MOST = 12
"""Batches of the event that are tried."""


def run(bench: Bench) -> Outcome:
    """Give the batches to the earlier state, at that state's own learning rate."""
    target, request = bench.target, bench.request
    where = request.earlier or (request.start if target.onset - request.start.step >= 4 * WARM else None)
    if where is None:
        return Outcome(ID, WHAT, {}, "not done: there is no earlier checkpoint, and the one before the event is too close to it")
    state = bench.session.state(where)
    first = state.step + WARM
    suspects = list(range(target.onset - 1, min(target.last + 1, target.onset - 1 + MOST) + 1))
    swapped = {first + i: step for i, step in enumerate(suspects)}
    rows = bench.session.run(state, first + len(suspects) - 1 + LEAD, Change(batches=swapped))
    level = statistics.median(v for r in rows[:WARM] if (v := r.value(target.signal)) is not None)
    moved = replace(target, onset=first, last=first + len(suspects), non_finite=None if target.non_finite is None else first + target.non_finite - suspects[0])
    returned = came_back(moved, rows, level) or _stands_out(bench, rows)
    text = "do it there too: it is in the data" if returned else "are harmless there"
    return Outcome(
        ID, WHAT, {"checkpoint": where.path, "batches_of": suspects, **shown(rows)}, f"the batches of steps {suspects[0]} to {suspects[-1]} {text}", returned
    )


def _stands_out(bench: Bench, rows: list[StepResult]) -> bool:
    """Whether the event's batches rise far out of the own batches before them, on this state."""
    target = bench.target
    if not math.isfinite(target.height) or target.non_finite is not None:
        return False
    own = [v for r in rows[:WARM] if (v := r.value(target.signal)) is not None]
    rest = [v for r in rows[WARM:] if (v := r.value(target.signal)) is not None]
    level = statistics.median(own)
    spread = 1.4826 * statistics.median(abs(v - level) for v in own)
    reached = max((v - level if target.height > 0 else level - v for v in rest), default=0.0)
    return reached >= max(FAR * spread, LEAST * abs(target.height))
