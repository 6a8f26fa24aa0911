"""Which batches were trained on at an event, and whether the same ones come back at other events."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from forensics.model import Absent, BatchRef, Event, FloatArray, Run
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

MAX_SAMPLES = 256
"""Sample ids kept of one batch."""

MAX_BATCHES = 12
"""Batches listed for one event: the step before the onset, and the steps to the peak."""


FEWEST_POINTS, FEWEST_TIMES = 50, 3
"""Logged losses, and other steps of the same batch, that a habit can be read from."""

OWN_POINTS = 5
"""Points around the event that belong to it."""

WORST = 0.9
"""Rank, as a share, from which a loss is one of the worst."""

COUNTED = 0.99
"""Share of equal distances from which ids are a counter."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A batch that stood at several events. ``p_value`` is the chance of that if events ignored the batch."""

    batch_id: int | float
    steps: tuple[int, ...]
    p_value: float


def batches_at(run: Run, first: int, last: int, attempts: int | None) -> tuple[BatchRef, ...]:
    """Batches of the steps ``first`` to ``last``, and of the logged step before: the batch before is a suspect too."""
    signal = run.signal(Role.BATCH_ID)
    if isinstance(signal, Absent):
        return ()
    curve = signal.curve(attempts)
    low = max(0, int(np.searchsorted(curve.steps, first)) - 1)
    high = min(int(np.searchsorted(curve.steps, last, side="right")), low + MAX_BATCHES)
    values = signal.values[curve.index]
    return tuple(BatchRef(int(curve.steps[i]), _plain(values[i]), _samples(run, int(curve.steps[i]))) for i in range(low, high) if np.isfinite(curve.values[i]))


def _samples(run: Run, step: int) -> tuple[int | str, ...]:
    return () if run.samples is None else run.samples.at(step)[:MAX_SAMPLES]


def recurrence(run: Run, event: Event, others: tuple[Event, ...], attempts: int | None) -> Recurrence | None:
    """A batch at this event's onset that also stood at the onset of other events (one-sided hypergeometric test)."""
    signal = run.signal(Role.BATCH_ID)
    if isinstance(signal, Absent) or not others:
        return None
    curve = signal.curve(attempts)
    here = int(np.searchsorted(curve.steps, event.onset_step))
    if here >= len(curve) or curve.steps[here] != event.onset_step:
        return None
    same = curve.steps[curve.values == curve.values[here]]
    onsets = {event.onset_step, *(o.onset_step for o in others)}
    hits = sorted(int(s) for s in same if int(s) in onsets)
    if len(hits) < 2:
        return None
    p_value = at_least(len(hits), len(curve), len(same), len(onsets))
    return Recurrence(_plain(signal.values[curve.index][here]), tuple(hits), p_value)


@dataclass(frozen=True, slots=True)
class Habit:
    """A batch that is worse than others whenever it comes: ``times`` steps besides the event's own, ``worse`` of them above nine in ten.

    ``p_value`` is that of a rank-sum test of its losses against all others, their course taken off.
    """

    batch_id: int | float
    times: int
    worse: int
    p_value: float


def habit(run: Run, loss: Prepared, onset: int, attempts: int | None) -> Habit | None:
    """How the batch of the onset does at its other steps; the event's own step is left out, or it would prove itself."""
    signal = run.signal(Role.BATCH_ID)
    if isinstance(signal, Absent) or len(loss) < FEWEST_POINTS:
        return None
    curve = signal.curve(attempts)
    here = int(np.searchsorted(curve.steps, onset))
    if here >= len(curve) or curve.steps[here] != onset or not np.isfinite(curve.values[here]):
        return None
    if int((curve.values == curve.values[here]).sum()) <= FEWEST_TIMES:
        return None
    _, i, j = np.intersect1d(loss.steps, curve.steps, assume_unique=True, return_indices=True)
    steps, away = loss.steps[i], ((loss.u - loss.centre) / loss.noise)[i]
    same = (curve.values[j] == curve.values[here]) & (np.abs(steps - onset) > OWN_POINTS * loss.every)
    times = int(same.sum())
    if times < FEWEST_TIMES or times > len(away) // 4:
        return None
    ranks = np.argsort(np.argsort(away)) + 1.0
    n = len(away)
    z = (float(ranks[same].mean()) - (n + 1) / 2) / math.sqrt((n + 1) * (n - times) / (12.0 * times))
    worse = int((ranks[same] > WORST * n).sum())
    return Habit(_plain(signal.values[curve.index][here]), times, worse, 0.5 * math.erfc(z / math.sqrt(2.0)))


def counts(ids: FloatArray) -> bool:
    """Ids that only count steps: they are equal in any two runs and say nothing about what was in the batches."""
    if len(ids) < 2 or not np.isfinite(ids).all():
        return False
    strides = np.diff(ids)
    return float((strides == np.median(strides)).mean()) >= COUNTED


def at_least(hits: int, points: int, marked: int, drawn: int) -> float:
    """Chance that ``drawn`` of ``points`` hold at least ``hits`` of the ``marked`` ones (hypergeometric upper tail)."""

    def log_choose(n: int, k: int) -> float:
        return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    total = log_choose(points, drawn)
    top = min(marked, drawn)
    usable = [k for k in range(hits, top + 1) if drawn - k <= points - marked]
    return min(1.0, sum(float(np.exp(log_choose(marked, k) + log_choose(points - marked, drawn - k) - total)) for k in usable))


def _plain(value: np.generic) -> int | float:
    number = value.item()
    return int(number) if float(number).is_integer() else float(number)
