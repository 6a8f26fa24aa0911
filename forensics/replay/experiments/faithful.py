"""R1: the run's own steps from the nearest good checkpoint, held against the log."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from forensics.replay.child.bench import LEAD, Bench
from forensics.replay.wire import Outcome, StepResult, came_back

ID, WHAT = "R1", "the run's own steps from the nearest good checkpoint"

STRAYS = 0.5
"""A calm disagreement beyond this share of the event's height, or of the steps' own spread, is no replay of this run."""


def run(bench: Bench) -> Outcome:
    """Run the steps, find the band, and say whether the event came back and where the replay parts from the log."""
    session, request, target = bench.session, bench.request, bench.target
    start = session.state(request.start)
    keep = {max(start.step, target.onset - LEAD), *range(target.onset - 1, target.last + 2)} if target.is_event else set()
    if len(keep) > 12:
        keep = {max(start.step, target.onset - LEAD), target.onset - 1, target.onset, target.onset + 1, target.last}
    if request.at_resume is not None:
        keep.add(request.at_resume.step)
    bench.rows = session.run(start, request.last, keep=keep, kept=bench.kept)
    calm = [r for r in bench.rows if r.step < target.onset] if target.is_event else list(bench.rows)
    bench.band = {
        s: max(bench.noise[s], bench.worst(calm[:-1] if len(calm) > 1 else calm, s) if target.is_event else bench.noise[s]) for s in ("loss", "grad_norm")
    }
    tracks = tracked(bench, calm)
    bench.parted = bench.agreement(bench.rows)
    if target.is_event:
        bench.reproduced = came_back(target, bench.rows, bench.baseline(bench.rows)) if target.has_height and tracks else None
    else:
        bench.reproduced = bench.parted is None and tracks
    result = {
        "first": start.step,
        "last": bench.rows[-1].step if bench.rows else None,
        "band": bench.band,
        "parted": bench.parted,
        "tracks": tracks,
        "calm_steps": len(calm),
    }
    return Outcome(ID, WHAT, result, _reading(bench, tracks, len(calm)), bench.reproduced)


def tracked(bench: Bench, calm: Sequence[StepResult]) -> bool:
    """Whether the calm steps are those of the run: the disagreement is small against how much logged steps differ."""
    if not calm:
        return True
    logged = [v for r in calm if (v := bench.logged("loss", r.step)) is not None and math.isfinite(v)]
    if len(logged) < 3:
        return True
    moves = sorted(abs(b - a) for a, b in itertools.pairwise(logged))
    usual = moves[len(moves) // 2] or abs(logged[0]) * 1e-3
    return bench.worst(calm, "loss") <= STRAYS * max(usual, 1e-12)


def _reading(bench: Bench, tracks: bool, calm: int) -> str:
    if not tracks:
        return f"the steps before the event are not those of the log (off by {bench.band['loss']:.3g}): batches, weights or settings differ from the run's"
    exact = "bit for bit" if bench.band["loss"] == 0.0 and bench.noise["loss"] == 0.0 else f"within {bench.band['loss']:.3g}"
    before = f"{calm} calm steps agree with the log {exact}; " if calm else ""
    if not bench.target.is_event:
        return f"every step agrees with the log {exact}" if bench.reproduced else f"{before}the replay parts from the log at step {bench.parted}"
    if bench.reproduced:
        return f"{before}the event comes back"
    parted = "" if bench.parted is None else f"; the replay parts from the log at step {bench.parted}"
    return f"{before}the event does not come back{parted}" if bench.target.has_height else f"{before.rstrip('; ')}{parted}"
