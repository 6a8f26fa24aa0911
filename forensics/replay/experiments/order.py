"""R16: the same samples in another order."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R16", "the same samples, shuffled among the batches"

MOST = 12
"""Steps whose samples change places: the event and as many before it."""


def run(bench: Bench) -> Outcome:
    """Shuffle the samples of the window."""
    steps = tuple(range(bench.first, min(bench.target.last + 2, bench.first + MOST)))
    rows = bench.window(Change(mixed=steps))
    returned = bench.returned(rows)
    text = "the event comes in another order too" if returned else "in another order nothing happens: the samples do it together"
    return Outcome(ID, WHAT, {"steps": list(steps), **shown(rows)}, text, returned)
