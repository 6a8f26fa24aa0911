"""R3: other batches on the state before the event."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R3", "other batches on the state before the event"

AWAY = 11
"""The nearest batch that is used instead lies this many steps before the window."""


def run(bench: Bench) -> Outcome:
    """Swap every batch of the window for one of the steps before it."""
    first = bench.first
    steps = range(first, bench.target.last + 2)
    others = {step: max(0, step - len(steps) - AWAY) for step in steps}
    rows = bench.window(Change(batches=others))
    returned = bench.returned(rows)
    text = "the event comes all the same: it is not in these batches" if returned else "nothing happens: the batches are needed for the event"
    return Outcome(ID, WHAT, {"batches_of": sorted(others.values()), **shown(rows)}, text, returned, None if returned else "other batches")
