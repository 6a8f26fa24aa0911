"""R8: parts of the optimizer's state or settings taken away."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R8", "optimizer surgery"

TRIALS = (
    ("no_momentum", "momentum zeroed"),
    ("no_variance", "second moment zeroed"),
    ("beta2", "beta2 0.95"),
    ("eps_large", "eps x100"),
    ("eps_small", "eps x0.01"),
)


def run(bench: Bench) -> Outcome:
    """One change at a time, from just before the event."""
    result: dict[str, object] = {}
    calm: list[str] = []
    for surgery, name in TRIALS:
        rows = bench.window(Change(optimizer=surgery))
        returned = not bench.calm(rows)
        result[name] = {"returned": returned, **shown(rows)}
        if not returned:
            calm.append(name)
    reading = f"calm with {', '.join(calm)}" if calm else "no part of the optimizer's state alone makes the event"
    return Outcome(ID, WHAT, result, reading, not calm, calm[0] if calm else None)
