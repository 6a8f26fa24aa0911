"""R0: the same steps again, from the same state. How much they differ is what no later experiment can see below."""

from __future__ import annotations

from forensics.replay.child.bench import Bench
from forensics.replay.wire import Outcome, disagreement

ID, WHAT = "R0", "the same steps twice from the same checkpoint"

STEPS = 4
"""Steps that are repeated."""

REPEATS = 2


def run(bench: Bench) -> Outcome:
    """Repeat the first steps and take the largest difference as noise."""
    start = bench.session.state(bench.request.start)
    last = min(start.step + STEPS - 1, bench.request.last)
    runs = [bench.session.run(start, last) for _ in range(REPEATS)]
    noise = {s: max((disagreement(a.value(s), b.value(s)) for a, b in zip(*runs, strict=True)), default=0.0) for s in ("loss", "grad_norm")}
    bench.noise = noise
    bench.seconds_per_step = min((r.seconds for r in runs[-1]), default=0.0)
    same = not any(noise.values())
    text = "bit for bit the same" if same else f"differs by {noise['loss']:.3g} in loss and {noise['grad_norm']:.3g} in gradient norm"
    return Outcome(ID, WHAT, {"noise": noise, "steps": len(runs[0]), "seconds_per_step": bench.seconds_per_step}, f"{text} over {len(runs[0])} steps")
