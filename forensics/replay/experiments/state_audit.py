"""R11: whether the states that were saved are the states the run had, and which state a resumed run went on with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from forensics.replay.child import audit
from forensics.replay.child.bench import Bench
from forensics.replay.child.change import FAITHFUL, Change
from forensics.replay.child.session import Snapshot
from forensics.replay.wire import Outcome, StepResult, came_back, disagreement

ID, WHAT = "R11", "an audit of the saved states"

STEPS = 12
"""Steps after a resume that must be those of the log."""

BETTER = 10.0
"""A changed state explains the log where it disagrees with it at most this many times less than the saved one."""


def run(bench: Bench) -> Outcome:
    """After a resume: the state that went on. Otherwise: what the checkpoint after the event looks like."""
    result: dict[str, Any] = {}
    readings: list[str] = []
    resumed = _resume_step(bench)
    if resumed is not None and bench.request.at_resume is not None:
        _resume(bench, bench.session.state(bench.request.at_resume), result, readings)
    elif bench.reproduced is False and bench.target.is_event and bench.request.after is not None:
        _after(bench, result, readings)
    if not readings:
        readings.append("the saved state is the one that the run went on with" if bench.reproduced else "nothing to compare the saved state with")
    return Outcome(ID, WHAT, result, "; ".join(readings), result.get("returned"))


def _resume_step(bench: Bench) -> int | None:
    """The step at which the run may have gone on from a file: it is said so, or the replay parts from the log right there."""
    where = bench.request.at_resume
    if where is None:
        return None
    near = bench.parted is not None and abs(bench.parted - where.step) <= 1
    return where.step if bench.request.resumed is not None or near else None


def _resume(bench: Bench, saved: Snapshot, result: dict[str, Any], readings: list[str]) -> None:
    target, step = bench.target, saved.step
    replayed = bench.kept.get(step)
    rows = bench.session.run(saved, max(min(bench.request.last, step + STEPS), min(target.last + 1, bench.request.last)))
    as_saved = None if _explains(bench, rows, step) else bench.agreement(rows)
    result |= {"resumed": step, "checkpoint": bench.request.at_resume.path if bench.request.at_resume else None, "as_saved": as_saved is None}
    if replayed is not None:
        found = audit.compare(replayed.model, saved.model)
        result["saved_against_replayed"] = {
            "equal": found.equal,
            "different": list(found.different[:20]),
            "strays": [asdict(s) for s in found.strays[:8]],
            "non_finite": list(found.non_finite[:20]),
        }
        readings.append(_against(found, step))
    if as_saved is None:
        result["returned"] = came_back(target, rows, bench.baseline(bench.rows)) if target.has_height else None
        readings.append(f"the run went on with exactly the state saved at step {step}" + ("; the event comes from that file" if result["returned"] else ""))
        if replayed is not None or result["returned"]:
            bench.rows = [r for r in bench.rows if r.step < step] + rows
            bench.reproduced = result["returned"] if result["returned"] is not None else bench.reproduced
        return
    result["first_loss_agrees"] = bool(rows) and as_saved > step
    readings.append(f"the run did not go on with the state saved at step {step}: it parts from it at step {as_saved}")
    _which_state(bench, saved, rows, result, readings)


def _explains(bench: Bench, rows: list[StepResult], step: int) -> bool:
    """Whether steps from the saved state are the logged ones, if not to the last bit: far nearer than the replay from before it."""
    before = [r for r in bench.rows if r.step >= step]
    usual = abs(bench.target.height) if bench.target.has_height else 0.0
    if bench.request.start.step < step and before:
        usual = _apart(bench, before[: len(rows)])
    return math.isfinite(usual) and _apart(bench, rows) * BETTER <= usual


def _against(found: audit.Audit, step: int) -> str:
    if found.non_finite:
        return f"the checkpoint of step {step} holds values that are not finite in {found.non_finite[0]}"
    if found.strays:
        s = found.strays[0]
        return f"{s.tensor}{list(s.index)} of the checkpoint of step {step} is {s.saved:.6g}, the replay arrives at {s.replayed:.6g}"
    if found.equal:
        return f"the checkpoint of step {step} holds what the replay arrives at"
    return f"{len(found.different)} tensors of the checkpoint of step {step} are not what the replay arrives at, {found.different[0]} most"


def _which_state(bench: Bench, saved: Snapshot, plain: list[StepResult], result: dict[str, Any], readings: list[str]) -> None:
    """Try what a resume can lose, one thing at a time."""
    step = saved.step
    last = min(bench.request.last, step + STEPS)
    steps = range(step, last + 1)
    trials: Mapping[str, Change] = {
        "a fresh optimizer": Change(optimizer="fresh"),
        "momentum zeroed": Change(optimizer="no_momentum"),
        "the second moment zeroed": Change(optimizer="no_variance"),
        "the data from its beginning": Change(batches={s: s - step for s in steps}),
        "the data one step early": Change(batches={s: max(0, s - 1) for s in steps}),
        "the data one step late": Change(batches={s: s + 1 for s in steps}),
        "the schedule from its beginning": Change(lr_steps={s: s - step for s in steps}),
        "a fresh optimizer and the data from its beginning": Change(optimizer="fresh", batches={s: s - step for s in steps}),
    }
    base = _apart(bench, [r for r in plain if r.step <= last])
    tried: dict[str, float] = {"the saved state": base}
    for name, change in {"": FAITHFUL, **trials}.items():
        if not name:
            continue
        rows = bench.session.run(saved, last, change)
        tried[name] = _apart(bench, rows)
        if bench.agreement(rows) is None:
            result |= {"agrees_with": name, "tried": tried}
            readings.append(f"it went on with {name}: that gives the logged steps")
            return
    best = min(tried, key=lambda n: tried[n])
    result["tried"] = tried
    if best != "the saved state" and tried[best] * BETTER <= base:
        result["agrees_with"] = best
        readings.append(f"{best} is by far the nearest to the logged steps")
    else:
        readings.append("none of what a resume usually loses gives the logged steps")


def _apart(bench: Bench, rows: list[StepResult]) -> float:
    gaps = [disagreement(bench.logged("loss", r.step), r.loss) for r in rows]
    return sum(gaps) / len(gaps) if gaps else 0.0


def _after(bench: Bench, result: dict[str, Any], readings: list[str]) -> None:
    """Go on to the next checkpoint and compare: what happened outside the arithmetic has left its mark there."""
    after = bench.request.after
    assert after is not None
    start = bench.session.state(bench.request.start)
    bench.session.put(start)
    rows = bench.session.run(start, after.step - 1)
    mine = bench.session.snapshot(after.step)
    saved = bench.session.state(after)
    result["after"] = after.path
    result["replayed_steps"] = len(rows)
    found = audit.compare(mine.model, saved.model)
    stray = found.strays[0] if found.strays and len(found.different) <= 1 else audit.moved_furthest(mine.model, saved.model)
    if found.non_finite:
        result["non_finite"] = list(found.non_finite[:20])
        readings.append(f"the next checkpoint (step {after.step}) holds values that are not finite in {found.non_finite[0]}")
    if stray is not None:
        result["stray"] = asdict(stray)
        readings.append(
            f"in the next checkpoint (step {after.step}) {stray.tensor}{list(stray.index)} is {stray.saved:.6g}; the replay has {stray.replayed:.6g} there, "
            f"and no other element is more than {stray.usual:.2g} away"
        )
    elif not found.non_finite:
        readings.append(f"no single element of the next checkpoint (step {after.step}) stands out")
