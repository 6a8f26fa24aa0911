"""R6: a smaller learning rate from just before the event."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R6", "a smaller learning rate"

FACTORS = (0.5, 0.1, 0.0)
"""Tried in this order; the first that calms is the smallest intervention."""


def run(bench: Bench) -> Outcome:
    """Scale the learning rate until the event is gone."""
    tried: dict[str, object] = {}
    for factor in FACTORS:
        rows = bench.window(Change(lr=factor))
        returned = not bench.calm(rows)
        tried[f"x{factor:g}"] = {"returned": returned, **shown(rows)}
        if not returned:
            name = f"lr x{factor:g}"
            return Outcome(ID, WHAT, tried, f"calm with {name}, for {len(rows)} steps", False, name if factor else None)
    return Outcome(ID, WHAT, tried, "the event comes even without any update: the step size has no part in it", True)
