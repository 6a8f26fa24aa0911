"""Data that was seen once is partly memorised, so the loss steps when a new epoch begins. Usually expected.

What happened
-------------
At the start of an epoch the model meets samples it has already trained on and predicts them better. Where the order
within an epoch is sorted, the step can also go up.

How it shows in logs
--------------------
A lasting drop of the training loss within 1 % of a multiple of the data set's size, counted in samples. The
validation loss is flat or gets worse. The gradient norm and the learning rate do nothing.

What would contradict it
------------------------
The position does not match the length of an epoch, or the validation loss improves with it.

Looks like, but is not
----------------------
data_repeat_after_resume: the drop starts at a resume, not at an epoch.

target_leak_or_format: the loss is low from the start.

loss_mask_error: the noise changes with the level.

overfitting: what follows when this goes on for many epochs.

How to confirm
--------------
Compute the loss of seen and of unseen batches on the same checkpoint (R4). A gap that equals the step confirms it.

Fix
---
Nothing, if the run was planned for several epochs. Otherwise fewer epochs, a lower learning rate, and an eye on the
validation loss.

References
----------
fast.ai 2023, "Can LLMs learn from a single example?", and a W&B report on the same effect.

"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import FEWEST_LEVEL, fell
from forensics.model import Absent, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="epoch_boundary_step",
    title="The loss steps down at the start of an epoch",
    family="data",
    part=Part.AMPLIFIER,
    needs=(Role.EPOCH,),
    replay="the loss of seen and of unseen batches on one checkpoint (R4)",
    info=(EventKind.DROP,),
)


NEAR_POINTS = 2
"""Logged points between the drop and the turn of the epoch."""

NEAR_SHARE = 0.01
"""... or this share of an epoch, where its length is reckoned from the size of the data set (catalogue)."""

NEAR_AFTER = 5
"""Evaluations after the turn that do not count for the level after it."""


def examine(view: View) -> Examination:
    """Looks for a drop of the loss at the step where an epoch turns, as logged or as reckoned from the samples seen."""
    found = Examination(view)
    if view.event.kind not in {EventKind.DROP, EventKind.RESTART}:
        return found
    turn = _logged_turn(view)
    if turn is None:
        turn = _reckoned_turn(view)
    if turn is None:
        found.missing.append("the epoch of every step, or the samples seen and the size of the data set")
        return found
    if not turn.near:
        return found.exclude("no epoch begins at this step")
    found.supports(weights.STRONG, turn.text, turn.role, turn.step)
    held_out = view.curves.get(Role.VAL_LOSS)
    both_sides = held_out is not None and FEWEST_LEVEL <= held_out.at(turn.step) <= len(held_out) - FEWEST_LEVEL - NEAR_AFTER
    if view.event.kind is EventKind.DROP and both_sides and fell(held_out, turn.step) is None:
        found.supports(weights.HINT, "the held-out loss did not fall with it: the data are known, not the model better", Role.VAL_LOSS, turn.step)
    found.remedy = "Nothing, if several epochs were planned; otherwise fewer epochs, and an eye on the held-out loss."
    return found


@dataclass(frozen=True, slots=True)
class _Turn:
    near: bool
    step: int
    text: str
    role: Role


def _logged_turn(view: View) -> _Turn | None:
    signal = view.run.signal(Role.EPOCH)
    if isinstance(signal, Absent):
        return None
    curve = signal.curve(view.incident.attempts)
    turns = curve.steps[np.flatnonzero(np.diff(np.floor(curve.values + 1e-9)) > 0) + 1]
    if len(turns) == 0:
        return _Turn(False, view.onset, "", Role.EPOCH)
    nearest = int(turns[np.argmin(np.abs(turns - view.onset))])
    return _Turn(abs(nearest - view.onset) <= NEAR_POINTS * view.every, nearest, f"an epoch begins at step {nearest}", Role.EPOCH)


def _reckoned_turn(view: View) -> _Turn | None:
    """From the samples seen and the size of the data set in the configuration."""
    signal, size = view.run.signal(Role.SAMPLES), view.settings.dataset
    if isinstance(signal, Absent) or not size or size <= 0:
        return None
    curve = signal.curve(view.incident.attempts)
    i = int(np.searchsorted(curve.steps, view.onset))
    if i >= len(curve) or not np.isfinite(curve.values[i]):
        return None
    seen = float(curve.values[i]) / size
    near = round(seen) >= 1 and abs(seen - round(seen)) <= NEAR_SHARE
    text = f"{curve.values[i]:,.0f} samples had been seen, {round(seen)} times the {size:,.0f} of the data set"
    return _Turn(near, int(curve.steps[i]), text, Role.SAMPLES)
