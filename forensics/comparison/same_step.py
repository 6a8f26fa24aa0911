"""Events of two runs at the same step. With the same data order it is the batch; with another it is something tied to the step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.correlate.batches import at_least, counts
from forensics.model import Absent, Event, EventKind, Run, Severity
from forensics.model.comparison import DataOrder, SameStep
from forensics.vocabulary import Role

NEAR_POINTS = 2
"""Logged points between two onsets at the same step."""

SUDDEN = frozenset({EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.NON_FINITE, EventKind.GRAD_NORM_SURGE, EventKind.DIVERGENCE})
"""Kinds whose step means something; the place of a drift or a change of noise is too blurred."""

DATA = ("bad_batch_outlier", "nan_in_input", "repeated_ngram_docs", "degenerate_data_pocket")
"""Causes that lie in the batch alone."""

CHANCE = ("sdc_transient", "ecc_or_row_remap")
"""Causes that strike one run and not another."""


def same_steps(runs: tuple[Run, Run], events: tuple[Sequence[Event], Sequence[Event]], order: DataOrder, every: float) -> tuple[SameStep, ...]:
    """Alarms of both runs at one step, and alarms of one run on a step that the other logged and passed calmly."""
    mine, theirs = ([e for e in side if e.kind in SUDDEN and e.severity is not Severity.INFO] for side in events)
    reach = NEAR_POINTS * max(1.0, every)
    found: list[SameStep] = []
    taken: set[str] = set()
    for event in mine:
        twin = next((o for o in theirs if o.id not in taken and abs(o.onset_step - event.onset_step) <= reach), None)
        if twin is not None:
            taken.add(twin.id)
            found.append(_both(runs, event, twin, order))
        elif _passed(runs[1], event.onset_step, events[1], reach):
            found.append(_one(event, order, a=True))
    found += [_one(o, order, a=False) for o in theirs if o.id not in taken and _passed(runs[0], o.onset_step, events[0], reach)]
    return tuple(sorted(found, key=lambda s: (s.a_event is None or s.b_event is None, s.step)))


def coincidence(events: tuple[Sequence[Event], Sequence[Event]], both: int, steps: int, every: float) -> float | None:
    """Chance of at least ``both`` shared events if the runs had nothing in common (hypergeometric); None without one."""
    counts = [sum(e.kind in SUDDEN and e.severity is not Severity.INFO for e in side) for side in events]
    if both == 0 or min(counts) == 0:
        return None
    slots = max(int(steps / max(1.0, every)), 1)
    covered = min(slots, counts[0] * (2 * NEAR_POINTS + 1))
    return at_least(both, slots, covered, min(counts[1], slots))


def _both(runs: tuple[Run, Run], a: Event, b: Event, order: DataOrder) -> SameStep:
    batch = _same_batch(runs, a.onset_step, b.onset_step)
    shared = batch if batch is not None else (None if order is DataOrder.UNKNOWN else order is DataOrder.SAME)
    known = (a.onset_step, a.id, b.id, a.kind.value, shared)
    if shared:
        return SameStep(*known, "both runs broke on the same batch: look into its data", DATA, CHANCE)
    if shared is None:
        return SameStep(*known, "both runs broke at this step; whether on the same batch is not known: log batch ids", (), CHANCE)
    why = "both runs broke at this step on different batches: something tied to the step number (schedule, evaluation, checkpoint), not the data"
    return SameStep(*known, why, (), (*DATA, *CHANCE))


def _one(event: Event, order: DataOrder, *, a: bool) -> SameStep:
    shared = None if order is DataOrder.UNKNOWN else order is DataOrder.SAME
    known = (event.onset_step, event.id if a else None, None if a else event.id, event.kind.value, shared)
    other = "B" if a else "A"
    if order is DataOrder.SAME:
        why = f"run {other} saw the same batch and stayed calm: not the data alone, but the state it met, a setting, or the machine"
        return SameStep(*known, why, ("batch_state_interaction", "sdc_transient"), DATA)
    return SameStep(*known, f"run {other} passed this step calmly" + (", on other data" if order is DataOrder.DIFFERENT else ""))


def _passed(run: Run, step: int, events: Sequence[Event], reach: float) -> bool:
    """The run logged its loss on both sides of the step and was not in trouble there."""
    loss = run.signal(Role.LOSS)
    if isinstance(loss, Absent) or len(loss) == 0:
        return False
    inside = int(loss.steps.min()) + reach < step < int(loss.steps.max()) - reach
    trouble = (e for e in events if e.severity is not Severity.INFO)
    return inside and not any(e.onset_step - reach <= step and (e.end_step is None or step <= e.end_step + reach) for e in trouble)


def _same_batch(runs: tuple[Run, Run], *steps: int) -> bool | None:
    ids = []
    for run, step in zip(runs, steps, strict=True):
        signal = run.signal(Role.BATCH_ID)
        if isinstance(signal, Absent):
            return None
        curve = signal.curve()
        at = int(np.searchsorted(curve.steps, step))
        if at >= len(curve) or curve.steps[at] != step or counts(curve.values):
            return None
        ids.append(float(curve.values[at]))
    return ids[0] == ids[1]
