"""Where two curves part: the first step that differs at all, and the step from which they stay apart."""

from __future__ import annotations

import numpy as np

from forensics.correlate.batches import counts
from forensics.model import Absent, FloatArray, IntArray, Run
from forensics.model.comparison import DataOrder, Parting
from forensics.primitives.prepared import BASELINE_POINTS, NOISE_POINTS, Prepared, prepare
from forensics.primitives.rises import Rise, find_rises
from forensics.primitives.robust import centred_median, local_sd
from forensics.vocabulary import Role

COMPARED = (Role.LOSS, Role.GRAD_NORM, Role.LR, Role.LOSS_SCALE, Role.BATCH_SIZE, Role.VAL_LOSS, Role.PARAM_NORM, Role.UPDATE_RMS)
"""Roles that are compared, in the order of the report."""

PLANNED = frozenset({Role.LR, Role.BATCH_SIZE})
"""Roles without noise: they are apart from the first step that differs by more than printing."""

PRINTED = 0.01
"""Relative difference of such a role that is more than printing with few digits."""

EQUAL = 1e-9
"""Relative difference below which two values are the same number, printed or summed in another order."""

FLOOR = 1e-3
"""Noise of a difference below a tenth of a percent is rounding."""

LASTS = 30
"""Logged points that a difference must last to be a parting and not a spike of one run."""

FROM_START = 30
"""Points at the start that tell whether the runs were apart from the beginning."""

CERTAIN_SDS = 5.0
"""Standard errors of a median from which a level differs."""

FEWEST = 8
"""Shared points that can be compared."""

LEVEL_POINTS = 40
"""Points whose median is the level after the parting."""

SAME_IDS, OTHER_IDS = 0.99, 0.5
"""Share of equal batch ids from which the order is the same, and below which it is another."""

TOGETHER, UNRELATED = 0.5, 0.1
"""Correlation of the losses' noise from which both saw the same batches, and below which they did not."""

MANY = 100
"""Points that make such a correlation."""


def partings(a: Run, b: Run) -> tuple[Parting, ...]:
    """One entry for each role that both runs log on at least FEWEST shared steps."""
    found = (_parting(a, b, role) for role in COMPARED)
    return tuple(p for p in found if p is not None)


def _parting(a: Run, b: Run, role: str) -> Parting | None:
    left, right = a.signal(role), b.signal(role)
    if isinstance(left, Absent) or isinstance(right, Absent):
        return None
    one, two = left.curve(), right.curve()
    _, i, j = np.intersect1d(one.steps, two.steps, assume_unique=True, return_indices=True)
    steps, x, y = one.steps[i], one.values[i], two.values[j]
    if len(steps) < FEWEST:
        return None
    size = np.maximum(np.abs(x), np.abs(y))
    with np.errstate(invalid="ignore"):
        unequal = ~((x == y) | (np.abs(x - y) <= EQUAL * size) | (np.isnan(x) & np.isnan(y)))
    first = int(steps[unequal][0]) if unequal.any() else None
    at = None
    if first is not None:
        at = _first_planned(x, y) if role in PLANNED else _apart(x, y)
    level = 1 if role in PLANNED else LEVEL_POINTS
    tail = slice(-max(3, len(steps) // 10), None)
    return Parting(
        signal=left.name,
        role=role,
        shared_points=len(steps),
        first_difference=first,
        apart_from=None if at is None else int(steps[at]),
        a=None if at is None else _median(x[at : at + level]),
        b=None if at is None else _median(y[at : at + level]),
        a_end=_median(x[tail]),
        b_end=_median(y[tail]),
    )


def _first_planned(x: FloatArray, y: FloatArray) -> int | None:
    with np.errstate(invalid="ignore"):
        far = np.abs(x - y) > PRINTED * np.maximum(np.abs(x), np.abs(y))
    return int(np.argmax(far)) if far.any() else None


def _median(values: FloatArray) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


def _apart(x: FloatArray, y: FloatArray) -> int | None:
    """Position from which the two stay apart: a run that breaks off into NaN while the other does not is apart too."""
    lost = np.isfinite(x) != np.isfinite(y)
    broken = int(np.argmax(lost)) if lost.any() and lost[np.argmax(lost) :].mean() > 0.5 else None
    usable = np.isfinite(x) & np.isfinite(y)
    kept = np.flatnonzero(usable)
    p, q = x[usable], y[usable]
    if len(p) < FEWEST:
        return broken
    size = max(float(np.abs(p).max()), float(np.abs(q).max()), 1e-300)
    p, q = p / size, q / size  # squares of huge numbers are none
    positive = (p > 0).all() and (q > 0).all()
    d = np.log(p) - np.log(q) if positive else p - q
    floor = FLOOR if positive else FLOOR * max(float(np.median(np.abs(p))), 1e-12)
    noise = np.maximum(local_sd(d - centred_median(d, BASELINE_POINTS), NOISE_POINTS), floor)
    places = [int(kept[k]) for k in _starts(d, noise)]
    return min([*places, *([] if broken is None else [broken])], default=None)


def _starts(d: FloatArray, noise: FloatArray) -> list[int]:
    """Positions at which a lasting difference begins."""
    start = d[:FROM_START]
    if abs(float(np.median(start))) > CERTAIN_SDS * 1.25 * float(np.median(noise[:FROM_START])) / np.sqrt(len(start)):
        return [0]
    lasting = [r for side in (d, -d) for r in find_rises(side, noise) if _lasts(r, len(d))]
    if lasting:
        return [min(r.onset for r in lasting)]
    middle = float(np.median(d[len(d) // 2 :]))
    creeping = abs(middle) > CERTAIN_SDS * 1.25 * float(np.median(noise)) / np.sqrt(max(1, len(d) // 2 // 4))
    return [_crept(d, middle)] if creeping else []


def _lasts(rise: Rise, points: int) -> bool:
    return (points if rise.end is None else rise.end) - rise.onset >= min(LASTS, max(3, points // 10))


def _crept(d: FloatArray, level: float) -> int:
    """Where a slow difference has reached half of its later level for good."""
    smooth = centred_median(d, BASELINE_POINTS) * np.sign(level)
    below = np.flatnonzero(smooth < 0.5 * abs(level))
    return min(int(below[-1]) + 1 if len(below) else 0, len(d) - 1)


def data_order(a: Run, b: Run) -> tuple[DataOrder, str]:
    """Did both runs see the same batches at the same steps? From batch ids, else from how their losses fluctuate together."""
    ids = a.signal(Role.BATCH_ID), b.signal(Role.BATCH_ID)
    if not isinstance(ids[0], Absent) and not isinstance(ids[1], Absent):
        one, two = ids[0].curve(), ids[1].curve()
        _, i, j = np.intersect1d(one.steps, two.steps, assume_unique=True, return_indices=True)
        if len(i) >= FEWEST:
            share = float((one.values[i] == two.values[j]).mean())
            why = f"{share:.0%} of the batch ids of {len(i)} shared steps are equal"
            if share >= SAME_IDS and counts(one.values[i]):
                return _counted(_together(a, b), why)
            return (DataOrder.SAME if share >= SAME_IDS else DataOrder.DIFFERENT if share < OTHER_IDS else DataOrder.UNKNOWN), why
    return _together(a, b)


def _counted(losses: tuple[DataOrder, str], ids: str) -> tuple[DataOrder, str]:
    """The batch ids are a counter; the losses decide, and where they cannot, nobody can."""
    order, why = losses
    return order, f"{ids}, but they only count steps; {why.removeprefix('no batch ids; ').removeprefix('no batch ids, and ')}"


def _together(a: Run, b: Run) -> tuple[DataOrder, str]:
    left, right = a.signal(Role.LOSS), b.signal(Role.LOSS)
    if isinstance(left, Absent) or isinstance(right, Absent):
        return DataOrder.UNKNOWN, "neither batch ids nor losses are logged by both runs"
    one, two = prepare(left), prepare(right)
    i, j = _shared(one.steps, two.steps)
    if len(i) < MANY:
        return DataOrder.UNKNOWN, f"no batch ids, and only {len(i)} shared steps to tell by"
    if np.array_equal(one.values[i][:MANY], two.values[j][:MANY]):
        return DataOrder.SAME, f"the losses of the first {MANY} shared steps are equal"
    x, y = _fluctuation(one)[i], _fluctuation(two)[j]
    calm = (np.abs(x) < 4) & (np.abs(y) < 4)
    if calm.sum() < MANY or x[calm].std() == 0 or y[calm].std() == 0:
        return DataOrder.UNKNOWN, "no batch ids, and losses without noise to tell by"
    r = float(np.corrcoef(x[calm], y[calm])[0, 1])
    why = f"no batch ids; the fluctuations of the losses correlate by {r:.2f} over {int(calm.sum())} steps"
    return (DataOrder.SAME if r >= TOGETHER else DataOrder.DIFFERENT if r <= UNRELATED else DataOrder.UNKNOWN), why


def _fluctuation(signal: Prepared) -> FloatArray:
    return np.asarray((signal.u - signal.centre) / signal.noise)


def _shared(a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
    _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return i, j
