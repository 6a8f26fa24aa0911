"""R7: tighter, per-tensor and no gradient clipping."""

from __future__ import annotations

from forensics.replay.child.bench import Bench, shown
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R7", "other gradient clipping"


def run(bench: Bench) -> Outcome:
    """Clip at a tenth of the usual norm, and every tensor by itself."""
    clip = bench.session.clip
    trials: dict[str, Change] = {f"clip {0.1 * (clip or 1.0):g}": Change(clip=0.1 * (clip or 1.0))}
    if not bench.session.recipe.has("step"):
        trials["clip per tensor"] = Change(clip="tensor")
    result: dict[str, object] = {"clip": clip}
    calm = None
    for name, change in trials.items():
        rows = bench.window(change)
        returned = not bench.calm(rows)
        result[name] = {"returned": returned, **shown(rows)}
        if not returned and calm is None:
            calm = name
    return Outcome(ID, WHAT, result, f"calm with {calm}" if calm else "clipping does not help", calm is None, calm)
