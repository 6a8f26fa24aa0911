"""Attempts: where a run was started again, and counters that only look like it.

The loss (or the longest signal) decides; its restarts are then placed in every other signal by record number or time, so
that all signals of the run agree on which process wrote a point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from forensics.model import Attempt, BoolArray, FloatArray, IntArray, Signal, SourceInfo
from forensics.vocabulary import Role

RESUMABLE = frozenset({"wandb", "tensorboard"})
"""Formats where a new process writes a new file of the same run."""

LATE_POINTS = 3
"""A step back of at most so many points that then jumps ahead again was written late, not a restart."""
LATE_GAP = 1.5
"""That jump must leave out logged steps: be wider than this many logging intervals."""
CLOCK_BACK = 1.0
"""Seconds the clock must go back with the step for a point to count as written late; below this it is jitter."""

LOCAL_RESETS = 3
"""Fewer resets than this may be crashes; as many of one length are a counter per epoch."""
LOCAL_SPREAD = 0.2
"""Allowed spread of the period lengths, as a share of their median."""
LOCAL_START = 0.05
"""A reset goes back to within this share of the period of its beginning."""

DISORDER = 0.25
"""With more steps back than this share of all points the file is in no order, and no restart can be told."""

RECORDS_PER_SIGNAL = frozenset({"mlflow_files"})
"""Formats that keep one file per signal: their record numbers do not compare between signals, their times do."""


@dataclass(frozen=True, slots=True)
class Split:
    """The signals with their ``starts`` (and running steps where a counter was local), the attempts, and facts for the notes."""

    signals: tuple[Signal, ...]
    attempts: tuple[Attempt, ...]
    notes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Boundary:
    """Between point ``index - 1`` and point ``index`` of the reference signal."""

    index: int
    source: int
    opens_source: bool


def split(signals: Sequence[Signal], sources: Sequence[SourceInfo]) -> Split:
    """Tell the attempts of a run apart. O(points)."""
    references = list(_references(signals, sources))
    if not references:
        return Split(tuple(signals), (), {})
    for reference in references:
        drops = np.flatnonzero(np.diff(reference.steps) < 0) + 1
        if reference is references[0] and _is_local(reference, drops, signals):
            return _made_running(signals, reference, drops, sources)
        if _in_no_order(reference, drops):
            continue
        bounds = _restarts(reference, drops, sources)
        if bounds:
            placed = tuple(replace(s, starts=_starts(s, reference, bounds, sources)) for s in signals)
            return Split(placed, _attempts(reference, bounds), {})
    steps = references[0].steps
    drops = np.flatnonzero(np.diff(steps) < 0) + 1
    shuffled = _in_no_order(references[0], drops)
    whole = Attempt(int(steps.min() if shuffled else steps[0]), int(steps.max()))
    return Split(tuple(signals), (whole,), {"steps_out_of_order": len(drops)} if shuffled else {})


def _references(signals: Sequence[Signal], sources: Sequence[SourceInfo]) -> Iterator[Signal]:
    """The signals to ask for restarts: the loss, then the best of every other format, whose files may know more."""
    filled = [s for s in signals if len(s)]
    first = _reference(filled)
    if first is None:
        return
    yield first
    asked = _formats(first, sources)
    for name in dict.fromkeys(source.format for source in sources):
        if name in asked:
            continue
        found = _reference([s for s in filled if name in _formats(s, sources)])
        if found is not None:
            yield found


def _formats(signal: Signal, sources: Sequence[SourceInfo]) -> set[str]:
    return {sources[span.source].format for span in signal.spans if 0 <= span.source < len(sources)}


def _in_no_order(reference: Signal, drops: IntArray) -> bool:
    return len(drops) > 8 and len(drops) > DISORDER * len(reference)


def _made_running(signals: Sequence[Signal], reference: Signal, drops: IntArray, sources: Sequence[SourceInfo]) -> Split:
    bounds = [_boundary(reference, int(i), sources) for i in drops]
    running = tuple(_run_on(s, reference, bounds, sources) for s in signals)
    again = next(r for s, r in zip(signals, running, strict=True) if s is reference)
    return Split(running, (Attempt(int(again.steps[0]), int(again.steps.max())),), {"step_axis": "local steps, made running"})


def _reference(signals: Sequence[Signal]) -> Signal | None:
    if not signals:
        return None
    losses = sorted((s for s in signals if s.role == Role.LOSS), key=lambda s: s.rank)
    return losses[0] if losses else max(signals, key=len)


def _restarts(reference: Signal, drops: IntArray, sources: Sequence[SourceInfo]) -> list[_Boundary]:
    found: list[_Boundary] = []
    opening = {span.start for span in reference.spans[1:] if sources[span.source].format in RESUMABLE}
    start = 0
    for index in sorted({*map(int, drops), *opening}):
        if index in opening or not _is_late(reference, start, index):
            found.append(_boundary(reference, index, sources))
            start = index
    return found


def _boundary(reference: Signal, index: int, sources: Sequence[SourceInfo]) -> _Boundary:
    source, _ = reference.origin(index)
    opens = any(span.start == index for span in reference.spans) and 0 <= source < len(sources)
    return _Boundary(index, source, opens)


def _is_late(reference: Signal, start: int, index: int) -> bool:
    """Whether the step back at ``index`` is a point written late or twice rather than a new beginning."""
    steps, times = reference.steps, reference.wall_times
    if times is not None and times[index] < times[index - 1] - CLOCK_BACK:
        return True
    before = slice(start, index)
    if index == len(steps) - 1:
        same = (steps[before] == steps[index]) & (reference.values[before] == reference.values[index])
        if same.any():
            return True
    top = int(steps[before].max())
    following = steps[index : index + LATE_POINTS + 1]
    ahead = np.flatnonzero(following > top)
    if not len(ahead):
        return False
    landing = index + int(ahead[0])
    after = np.diff(steps[landing : landing + 9])
    usual = after[after > 0] if (after > 0).any() else np.diff(np.unique(steps[max(start, index - 9) : index]))
    if not len(usual):
        return False
    return int(steps[landing] - steps[landing - 1]) > LATE_GAP * float(np.median(usual))


def _is_local(reference: Signal, drops: IntArray, signals: Sequence[Signal]) -> bool:
    """Whether the steps count within an epoch: resets of about one length, each back to the beginning."""
    if len(drops) < LOCAL_RESETS or any(span.start in drops for span in reference.spans):
        return False
    steps = reference.steps
    edges = np.concatenate([[0], drops, [len(steps)]])
    tops = np.maximum.reduceat(steps, edges[:-1])
    firsts = steps[edges[:-1]]
    length = float(np.median(tops[:-1]))
    if length <= 0 or (np.abs(tops[:-1] - length) > LOCAL_SPREAD * length).any() or tops[-1] > (1 + LOCAL_SPREAD) * length:
        return False
    gaps = np.diff(steps)
    every = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    if (firsts > max(2 * every, LOCAL_START * length)).any():
        return False
    epochs = _epochs_rise(reference, drops, signals)
    return epochs if epochs is not None else not _starts_over(reference, edges)


def _epochs_rise(reference: Signal, drops: IntArray, signals: Sequence[Signal]) -> bool | None:
    """Whether a logged epoch counter goes on over the resets; None where there is none to ask."""
    for signal in signals:
        if signal.role == Role.EPOCH and len(signal) == len(reference):
            across = signal.values[drops] >= signal.values[drops - 1]
            return bool(across.all())
    return None


def _starts_over(reference: Signal, edges: IntArray) -> bool:
    """Whether the values begin anew with each period, as whole runs in one file do, rather than go on."""
    values = reference.values.astype(np.float64)
    heads = np.array([np.median(values[a : min(a + 3, b)]) for a, b in pairwise(edges)])
    tails = np.array([np.median(values[max(b - 3, a) : b]) for a, b in pairwise(edges)])
    with np.errstate(invalid="ignore"):
        anew = np.abs(heads[1:] - heads[0]) < np.abs(heads[1:] - tails[:-1])
    return bool(2 * anew.sum() > len(anew))


def _run_on(signal: Signal, reference: Signal, bounds: Sequence[_Boundary], sources: Sequence[SourceInfo]) -> Signal:
    """The signal with running steps: every period is moved behind the one before."""
    steps = reference.steps
    edges = [0, *(b.index for b in bounds), len(steps)]
    gaps = np.diff(steps)
    every = int(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1
    offsets = [0]
    for k in range(1, len(edges) - 1):
        top = int(steps[edges[k - 1] : edges[k]].max())
        offsets.append(offsets[-1] + top + max(every - int(steps[edges[k]]), 0))
    starts = [*_starts(signal, reference, bounds, sources), len(signal)]
    moved = signal.steps.copy()
    for k, offset in enumerate(offsets):
        moved[starts[k] : starts[k + 1]] += offset
    return replace(signal, steps=moved)


def _starts(signal: Signal, reference: Signal, bounds: Sequence[_Boundary], sources: Sequence[SourceInfo]) -> tuple[int, ...]:
    """Index of the first point of each attempt; an attempt without points starts where the next one does."""
    starts = [0]
    for bound in bounds:
        index = bound.index if signal is reference else _place(signal, reference, bound, starts[-1], sources)
        starts.append(min(max(index, starts[-1]), len(signal)))
    return tuple(starts)


def _place(signal: Signal, reference: Signal, bound: _Boundary, earliest: int, sources: Sequence[SourceInfo]) -> int:
    span = next((s for s in signal.spans if s.source == bound.source), None)
    if bound.opens_source and _formats(signal, sources) & _formats(reference, sources):
        return next((s.start for s in signal.spans if s.source >= bound.source), len(signal))
    one_file = sources[bound.source].format not in RECORDS_PER_SIGNAL if 0 <= bound.source < len(sources) else False
    if span is not None and one_file and signal.records is not None and reference.records is not None:
        keys = signal.records[span.start : span.stop]
        return span.start + _between(signal.steps[span.start : span.stop], keys, reference.records, reference.steps, bound.index)
    if signal.wall_times is not None and reference.wall_times is not None:
        return _between(signal.steps, signal.wall_times, reference.wall_times, reference.steps, bound.index)
    back = np.flatnonzero(np.diff(signal.steps[earliest:]) < 0)
    if len(back):
        return earliest + int(back[0]) + 1
    beyond = np.flatnonzero(signal.steps[earliest:] >= reference.steps[bound.index])  # only what survived was kept
    return earliest + int(beyond[0]) if len(beyond) else len(signal)


def _between(steps: IntArray, keys: IntArray | FloatArray, reference_keys: IntArray | FloatArray, reference_steps: IntArray, index: int) -> int:
    """The first point of the new attempt, given when the reference wrote its last old and its first new point.

    What was written in between belongs to the new attempt from the first point on that is not past the new beginning.
    """
    ordered = np.maximum.accumulate(np.nan_to_num(keys.astype(np.float64), nan=-np.inf))
    low = int(np.searchsorted(ordered, reference_keys[index - 1], side="right"))
    high = int(np.searchsorted(ordered, reference_keys[index], side="left"))
    first = int(reference_steps[index])
    early: BoolArray = steps[low:high] <= first
    return low + int(np.argmax(early)) if early.any() else max(low, high)


def _attempts(reference: Signal, bounds: Sequence[_Boundary]) -> tuple[Attempt, ...]:
    edges = [0, *(b.index for b in bounds), len(reference)]
    out: list[Attempt] = []
    for k in range(len(edges) - 1):
        part = reference.steps[edges[k] : edges[k + 1]]
        before = reference.steps[: edges[k]]
        earlier = before[before < part[0]]
        out.append(Attempt(int(part[0]), int(part.max()), int(earlier.max()) if k and len(earlier) else None))
    return tuple(out)
