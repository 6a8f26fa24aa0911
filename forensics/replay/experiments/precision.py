"""R5: float32 where the run computes in float16 or bfloat16."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R5", "higher precision"

PARTS = (("norms", "norms and softmax in float32"), ("attention", "attention in float32"), ("all", "everything in float32"))
"""From the smallest change to the largest."""


def run(bench: Bench) -> Outcome:
    """Lift everything; where that calms, find the smallest part that does."""
    halves = bench.slide.halves if bench.slide is not None else []
    if not halves and bench.session.recipe.precision == "fp32":
        return Outcome(ID, WHAT, {"formats": ["float32"]}, "not done: the step computes in float32 already")
    rows = bench.window(Change(lift="all"))
    everything = not bench.calm(rows)
    result: dict[str, object] = {"formats": halves, "all": {"returned": everything, **shown(rows)}}
    if everything:
        return Outcome(ID, WHAT, result, "the event comes in float32 too: the number format has no part in it", True)
    for part, name in PARTS[:-1]:
        rows = bench.window(Change(lift=part))
        returned = not bench.calm(rows)
        result[part] = {"returned": returned, **shown(rows)}
        if not returned:
            return Outcome(ID, WHAT, result, f"calm with {name}", False, name)
    return Outcome(ID, WHAT, result, f"calm with {PARTS[-1][1]}", False, PARTS[-1][1])
