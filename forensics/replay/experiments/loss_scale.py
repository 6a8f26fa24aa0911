"""R10: the gradient at several fixed loss scales."""

from __future__ import annotations

import math

from forensics.replay.child.bench import Bench
from forensics.replay.child.change import Change
from forensics.replay.wire import Outcome

ID, WHAT = "R10", "a sweep of the loss scale"

POWERS = (0, 4, 8, 12, 16, 20, 24)


def run(bench: Bench) -> Outcome:
    """The gradient norm of the bad step at each scale: overflow shows as a scale above which it is not finite."""
    if "float16" not in (bench.slide.halves if bench.slide is not None else []) and bench.session.scaler is None:
        return Outcome(ID, WHAT, {}, "not done: nothing computes in float16")
    step = bench.target.non_finite if bench.target.non_finite is not None else bench.target.onset
    before = bench.kept.get(step, bench.before())
    finite: dict[str, bool] = {}
    for power in POWERS:
        rows = bench.session.run(before, before.step, Change(loss_scale=2.0**power))
        norm = rows[0].grad_norm
        finite[f"2^{power}"] = norm is not None and math.isfinite(norm)
    good = [k for k, v in finite.items() if v]
    if not good:
        return Outcome(ID, WHAT, {"finite": finite}, "the gradient is not finite at any loss scale: it is no overflow of the scaled gradient", True)
    if len(good) == len(finite):
        return Outcome(ID, WHAT, {"finite": finite}, "the gradient is finite at every loss scale up to 2^24", False)
    return Outcome(ID, WHAT, {"finite": finite}, f"the gradient is finite up to a loss scale of {good[-1]} and overflows above", None)
