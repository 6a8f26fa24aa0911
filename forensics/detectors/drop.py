"""The loss falls sharply at one step and stays down.

Falling is what a loss is for, so only a step counts that is far sharper than the curve around it, lasts, and is not where a
schedule lowered the learning rate. At the start of an epoch it is expected and stays info.
"""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Event, EventKind, FloatArray, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.objective import Objective, objective
from forensics.primitives.prepared import Prepared
from forensics.primitives.robust import Piece, block_medians, forward_median, pieces
from forensics.primitives.tails import Tail
from forensics.vocabulary import Role

NAME = "drop"

NEAR = 8
"""Points on either side that must lie on two levels."""

FAR = 40
"""Points on either side over which the step must last."""

SDS = 8.0
"""Height in noise sds of medians (catalogue: rz <= -6, and persistent)."""

STEEPNESS = 4.0
"""The step must exceed what the curve falls over as many points before it by this factor."""

REGULAR, UNEVEN = 3, 0.03
"""Falls that come at multiples of one distance, within this share of it, are a habit of the run."""

LIGHT = 20.0
"""Degrees of freedom of a difference of medians of NEAR points."""

LASTING = 0.6
"""Share of the step that must be left over FAR points."""
WORTH = 0.05
"""Share of the loss that an unexpected fall must be worth to be a warning."""

WON = 0.1
"""Loss of a discriminator below which it tells everything apart (catalogue); 0.69 per term is a draw."""

SHARE = 0.1
"""Share of all progress so far that a drop must be worth."""


def detect(curves: Curves) -> list[Event]:
    """Sharp, lasting falls of the primary loss."""
    loss = curves.get(Role.LOSS)
    if loss is None or len(loss) <= 2 * FAR:
        return []
    places = _steps(loss.u, loss.noise)
    regular = _regular(places)
    return [_event(curves, loss, i, regular) for i in places if not _planned(curves, loss, i)]


def _regular(places: list[int]) -> int | None:
    """Points between falls that come again and again at multiples of one distance, as epochs do."""
    if len(places) < REGULAR:
        return None
    apart = np.diff(places)
    shortest = int(apart.min())
    for parts in (1, 2, 3):
        unit = shortest / parts
        counts = np.round(apart / unit)
        unit = float((apart @ counts) / (counts @ counts))
        if unit > 2 * NEAR and (np.abs(apart - counts * unit) <= max(NEAR / 2, UNEVEN * unit)).all():
            return round(unit)
    return None


def _steps(u: FloatArray, noise: FloatArray) -> list[int]:
    steep = [_steep(u[p.around], noise[p.around], p) for p in pieces(len(u), 3 * NEAR, NEAR)]
    falls = {i: f for found in steep for i, f in found.items() if FAR <= i < len(u) - FAR // 2}
    start = float(np.median(u[:5]))
    found: list[int] = []
    for i, fall in falls.items():
        far = float(np.median(u[i - FAR : i]))
        if far - float(np.median(u[i : i + FAR])) < LASTING * fall or fall < SHARE * max(start - far, 0.0):
            continue
        if found and i - found[-1] <= 2 * NEAR:
            if fall > falls[found[-1]]:
                found[-1] = i
        else:
            found.append(i)
    return sorted({_edge(u, i) for i in found[:20]})


def _steep(u: FloatArray, noise: FloatArray, piece: Piece) -> dict[int, float]:
    """Falls between the medians before and after a point that stand out of the noise and of the fall just before them."""
    if not _falls(u, noise):
        return {}
    after = forward_median(u, NEAR)
    before = np.concatenate([np.full(min(NEAR, len(u)), np.nan), after[:-NEAR]])
    fall = np.nan_to_num(before - after, nan=0.0)
    high = np.flatnonzero(fall >= SDS * noise * np.sqrt(2 * 1.57 / NEAR))
    high = high[(high >= max(NEAR, piece.inner.start)) & (high < piece.inner.stop)]
    earlier = np.nan_to_num(before[high - NEAR] - before[high], nan=np.inf)
    kept = high[fall[high] >= STEEPNESS * np.abs(earlier)]
    return {piece.low + i - piece.inner.start: float(fall[i]) for i in kept.tolist()}


def _falls(u: FloatArray, noise: FloatArray) -> bool:
    """A quick look at blocks: where no two of them near each other differ by half of what counts, no point needs a look."""
    if len(u) < 4 * NEAR:
        return True
    level = block_medians(u, NEAR)
    fall = np.maximum(level[:-2] - level[2:], level[:-2] - level[1:-1])
    return bool((fall >= 0.5 * SDS * float(noise.min()) * np.sqrt(2 * 1.57 / NEAR)).any())


def _edge(u: FloatArray, index: int) -> int:
    """The sharpest edge close by: medians of a falling curve differ most a little too late."""
    low = max(4, index - NEAR)
    heights = [float(np.median(u[k - 4 : k]) - np.median(u[k : k + 4])) for k in range(low, min(index + NEAR, len(u) - 4))]
    return low + int(np.argmax(heights)) if heights else index


def _planned(curves: Curves, loss: Prepared, index: int) -> bool:
    """The learning rate was lowered here."""
    schedule = curves.schedule
    if schedule is None:
        return False
    step = int(loss.steps[index])
    return any(abs(drop.step - step) <= 3 * NEAR * loss.every for drop in schedule.drops)


def _worth(loss: Prepared, base: float, level: float) -> bool:
    """A fall by some per cent of the loss; smaller ones are steps of learning."""
    return not loss.log or base - level >= WORTH * abs(base)


def _event(curves: Curves, loss: Prepared, index: int, regular: int | None) -> Event:
    step = int(loss.steps[index])
    base = float(np.median(loss.values[max(0, index - NEAR) : index]))
    level = float(np.median(loss.values[index : index + NEAR]))
    fall = float(np.median(loss.u[max(0, index - NEAR) : index]) - np.median(loss.u[index : index + NEAR]))
    z = fall / (float(loss.noise[index]) * float(np.sqrt(2 * 1.57 / NEAR)))
    often = "" if regular is None else f", as it does every {regular * loss.every:.0f} steps or a multiple of that: epochs"
    return Event(
        kind=EventKind.DROP,
        severity=Severity.WARNING if regular is None and _alarming(curves, loss, step, base, level) else Severity.INFO,
        confidence=0.9,
        signal=loss.name,
        onset_step=step,
        peak_step=step,
        end_step=None,
        recovered=False,
        baseline=base,
        peak=level,
        height=level - base,
        p_value=Tail(np.empty(0), LIGHT).p_value(z, len(loss) / NEAR),
        text=f"{loss.name} fell from {base:.4g} to {level:.4g} at once and stayed there{often}",
    )


def _alarming(curves: Curves, loss: Prepared, step: int, base: float, level: float) -> bool:
    """Nothing explains the fall; in a game of two, one of them has won it."""
    aim = objective(curves.run)
    if aim is Objective.ADVERSARIAL:
        return loss.log and level < WON <= base
    return aim is Objective.ORDINARY and _worth(loss, base, level) and not _epoch_turns(curves, step, loss.every)


def _epoch_turns(curves: Curves, step: int, every: float) -> bool:
    signal = curves.run.signal(Role.EPOCH)
    if isinstance(signal, Absent):
        return False
    epoch = signal.curve(curves.attempts)
    turns = epoch.steps[np.flatnonzero(np.diff(np.floor(epoch.values + 1e-9)) > 0) + 1]
    return bool((np.abs(turns - step) <= 3 * every).any())
