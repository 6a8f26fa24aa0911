"""What the alarms of one run have in common: a shard, a node, a phase of the learning rate, a place in the epoch, an interval, the scaler.

Every test asks how likely it is that so many onsets fall where they do if events ignored the thing asked about; chances are
multiplied by the number of tests that were made, so that a run with many signals shows no more patterns than one with few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from forensics.correlate.batches import at_least
from forensics.model import Absent, IntArray, Run, Signal
from forensics.model.words import chance
from forensics.primitives.curves import Curves
from forensics.primitives.lr_schedule import LrSchedule
from forensics.vocabulary import Role, normalise

FEWEST = 3
"""Alarms that can have something in common."""

CERTAIN = 0.01
"""Chance below which they have (catalogue: Fisher p < .01)."""

FEW_VALUES = 1 / 3
"""Distinct values per point below which a signal names groups; more of them name single steps."""

NEAR_STEPS = 20
"""Steps after a doubling of the loss scale in which an event can have to do with it (catalogue)."""

HIGH = 0.8
"""Share of its maximum from which the learning rate is high (catalogue)."""

INTERVAL_REACH = 2
"""Logged points after a multiple of an interval that belong to it."""

MOST_ALARMS = 200
"""Alarms of one run that are looked at, the first ones."""

PLACES = frozenset({"node", "host", "hostname", "machine", "worker", "gpu_id", "device_id", "rank_id", "slowest_rank"})
"""Words in the name of a signal that say where a step was computed."""

SHARDS = frozenset({"shard", "file", "dataset", "domain", "source"})
"""Words that say where the data came from."""

INTERVALS = frozenset(
    {
        *("eval_steps", "eval_interval", "eval_every", "val_check_interval"),
        *("save_steps", "save_interval", "save_every", "checkpoint_interval", "ckpt_interval"),
    }
)
"""Settings that make something happen every so many steps."""


class Thing(StrEnum):
    """What the alarms have in common."""

    BATCH = "batch"
    SHARD = "shard"
    PLACE = "place"
    LR_HIGH = "high learning rate"
    LR_PHASE = "learning-rate phase"
    EPOCH = "place in the epoch"
    INTERVAL = "interval"
    SCALE = "growth of the loss scale"


@dataclass(frozen=True, slots=True)
class Pattern:
    """``hits`` of the ``alarms`` agree; ``signal`` is the logged name behind it, None for a setting; ``value`` what they agree on."""

    thing: Thing
    text: str
    p_value: float
    hits: int
    alarms: int
    signal: str | None
    value: float | str


def patterns(run: Run, curves: Curves, onsets: Sequence[int]) -> tuple[Pattern, ...]:
    """Patterns of the onsets (steps) of a run's alarms, the surest first; empty for fewer than FEWEST."""
    steps = sorted(set(onsets))[:MOST_ALARMS]
    loss = run.signal(Role.LOSS)
    if len(steps) < FEWEST or isinstance(loss, Absent) or len(loss) == 0:
        return ()
    every = float(np.median(np.diff(np.unique(loss.steps)))) if len(loss) > 1 else 1.0
    tested = [
        *_groups(run, curves, steps),
        *_rates(curves.schedule, steps),
        *_epoch(run, curves, steps),
        *_intervals(run, curves, steps, every),
        *_growth(run, curves, steps),
    ]
    corrected = [replace(p, p_value=min(1.0, p.p_value * len(tested))) for p in tested]
    certain = [replace(p, text=f"{p.text} (chance of that: {chance(p.p_value)})") for p in corrected if p.p_value < CERTAIN]
    return tuple(sorted(certain, key=lambda p: p.p_value))


def _groups(run: Run, curves: Curves, onsets: Sequence[int]) -> Iterator[Pattern]:
    """Signals whose value names a shard, a batch or a place."""
    for signal in run.signals:
        thing = _names(signal)
        if thing is None or len(signal) == 0:
            continue
        curve = signal.curve(curves.attempts)
        finite = np.isfinite(curve.values)
        steps, values = curve.steps[finite], curve.values[finite]
        distinct, counts = np.unique(values, return_counts=True)
        if len(distinct) < 2 or (thing is not Thing.BATCH and len(distinct) > FEW_VALUES * len(values)):
            continue
        at = np.searchsorted(steps, onsets)
        exact = [int(i) for i, s in zip(at, onsets, strict=True) if i < len(steps) and steps[i] == s]
        if len(exact) < FEWEST:
            continue
        value, hits = Counter(values[exact].tolist()).most_common(1)[0]
        marked = int(counts[np.searchsorted(distinct, value)])
        p = at_least(hits, len(values), marked, len(exact)) * min(len(distinct), len(exact))
        text = f"{hits} of {len(exact)} events fall on {signal.name} {value:g}, where {marked / len(values):.1%} of the steps do"
        yield Pattern(thing, text, min(1.0, p), hits, len(exact), signal.name, float(value))


def _names(signal: Signal) -> Thing | None:
    words = set(normalise(signal.name).split("_"))
    if words & PLACES or normalise(signal.name) in PLACES:
        return Thing.PLACE
    if words & SHARDS and signal.role in {None, Role.BATCH_ID}:
        return Thing.SHARD
    return Thing.BATCH if signal.role == Role.BATCH_ID else None


def _rates(schedule: LrSchedule | None, onsets: Sequence[int]) -> Iterator[Pattern]:
    """Whether events are commoner where the learning rate is high, or in the warmup."""
    if schedule is None or schedule.shape == "constant":
        return
    at = np.clip(np.searchsorted(schedule.steps, onsets, side="right") - 1, 0, len(schedule.steps) - 1)
    high = schedule.values >= HIGH * schedule.peak
    hits, marked = int(high[at].sum()), int(high.sum())
    text = f"{hits} of {len(onsets)} events fall where the learning rate is at {HIGH:.0%} of its maximum or more, as {marked / len(high):.0%} of the steps do"
    yield Pattern(Thing.LR_HIGH, text, at_least(hits, len(high), marked, len(onsets)), hits, len(onsets), None, HIGH)
    warm = schedule.warmup_end
    if warm > 0:
        inside = int((at < warm).sum())
        text = f"{inside} of {len(onsets)} events fall into the warmup, as {warm / len(high):.0%} of the steps do"
        yield Pattern(Thing.LR_PHASE, text, at_least(inside, len(high), warm, len(onsets)), inside, len(onsets), None, "warmup")


def _epoch(run: Run, curves: Curves, onsets: Sequence[int]) -> Iterator[Pattern]:
    """Do events come at the same place of every epoch? Rayleigh's test of their phases."""
    signal = run.signal(Role.EPOCH)
    if isinstance(signal, Absent) or len(signal) < 3:
        return
    curve = signal.curve(curves.attempts)
    if len(curve) < 3 or curve.values[-1] - curve.values[0] < 2 or (curve.values == np.floor(curve.values)).all():
        return
    phases = np.interp(onsets, curve.steps, curve.values) % 1.0
    resultant = abs(np.exp(2j * math.pi * phases).sum())
    k = len(onsets)
    p = math.exp(math.sqrt(1 + 4 * k + 4 * (k**2 - float(resultant) ** 2)) - (1 + 2 * k))
    middle = float(np.angle(np.exp(2j * math.pi * phases).sum()) / (2 * math.pi) % 1.0)
    text = f"the {k} events come at the same place of every epoch, after {middle:.0%} of it"
    yield Pattern(Thing.EPOCH, text, min(1.0, p), k, k, signal.name, middle)


def _intervals(run: Run, curves: Curves, onsets: Sequence[int], every: float) -> Iterator[Pattern]:
    """Whether events follow what the configuration does every so many steps (evaluations, checkpoints)."""
    steps = np.unique(run.signal(Role.LOSS).curve(curves.attempts).steps)  # type: ignore[union-attr]
    reach = INTERVAL_REACH * max(every, 1.0)
    for key, value in run.config.items():
        name = normalise(str(key).rsplit(".", 1)[-1])
        if name not in INTERVALS or isinstance(value, bool) or not isinstance(value, (int, float)) or value < 10 * reach:
            continue
        after = _after(steps, float(value), reach)
        hits = int(_after(np.asarray(onsets, dtype=np.int64), float(value), reach).sum())
        text = f"{hits} of {len(onsets)} events begin right after a multiple of {name} = {value:g}"
        p = at_least(hits, len(steps), int(after.sum()), min(len(onsets), len(steps)))
        yield Pattern(Thing.INTERVAL, text, p, hits, len(onsets), None, f"{name} = {value:g}")


def _after(steps: IntArray, interval: float, reach: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray((steps % interval <= reach) & (steps >= interval))


def _growth(run: Run, curves: Curves, onsets: Sequence[int]) -> Iterator[Pattern]:
    """Whether events follow doublings of the loss scale."""
    signal = run.signal(Role.LOSS_SCALE)
    if isinstance(signal, Absent):
        return
    curve = signal.curve(curves.attempts)
    if len(curve) < 3:
        return
    ups = curve.steps[np.flatnonzero(np.diff(curve.values) > 0) + 1]
    if len(ups) == 0:
        return

    def follows(steps: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        i = np.searchsorted(ups, steps, side="right") - 1
        return np.asarray((i >= 0) & (steps - ups[np.maximum(i, 0)] <= NEAR_STEPS))

    hits, marked = int(follows(np.asarray(onsets, dtype=np.int64)).sum()), int(follows(curve.steps).sum())
    text = f"{hits} of {len(onsets)} events come within {NEAR_STEPS} steps after the loss scale grew, as {marked / len(curve):.0%} of the steps do"
    p = at_least(hits, len(curve), marked, min(len(onsets), len(curve)))
    yield Pattern(Thing.SCALE, text, p, hits, len(onsets), signal.name, float(len(ups)))


