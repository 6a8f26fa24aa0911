"""R2: the event's batches on an earlier, healthy state."""

from __future__ import annotations

import statistics
from dataclasses import replace

from forensics.replay.child.bench import LEAD, Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome, came_back

ID, WHAT = "R2", "the event's batches on an earlier state"

WARM = 5
"""Own batches that an earlier state takes first, for its level."""

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
    returned = came_back(moved, rows, level)
    text = "do it there too: it is in the data" if returned else "are harmless there"
    return Outcome(
        ID, WHAT, {"checkpoint": where.path, "batches_of": suspects, **shown(rows)}, f"the batches of steps {suspects[0]} to {suspects[-1]} {text}", returned
    )
