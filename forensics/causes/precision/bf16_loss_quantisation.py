"""The loss was averaged or printed in bf16 and takes only a few values. A logging artefact.

What happened
-------------
Between 1 and 2, bf16 values are 2^-7 apart, between 2 and 4 they are 2^-6 apart. A loss reported in bf16 moves in
steps of that size, and small changes are either invisible or look like jumps.

How it shows in logs
--------------------
Fewer distinct values than a fifth of the points in a window of 100, with gaps of exactly 2^-7 or 2^-6. A public 80B
run showed 11 distinct values between 1.6562 and 1.7344.

What would contradict it
------------------------
Many distinct values.

Looks like, but is not
----------------------
lr_too_low_or_zero and other plateaus: the loss is flat, but its digits vary.

metric_artifact: other ways in which the log and not the training is at fault.

How to confirm
--------------
Count distinct values and look at the gaps between them.

Fix
---
Compute and log the mean loss in float32. When reading such a log, treat changes below one step as no change.

References
----------
IDEFICS chronicle. The spacing is arithmetic.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, FloatArray, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="bf16_loss_quantisation",
    title="The logged loss is rounded to bf16",
    family="precision",
    part=Part.AMPLIFIER,
    needs=(Role.LOSS,),
    replay="none: log the loss in float32",
    info=(EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.DROP),
)

WINDOW = 100
"""Logged points in which values are counted."""

FEW = 5
"""At most one distinct value per this many points is a coarse print (catalogue)."""

BITS = 7
"""Bits of the fraction of bf16: values between 1 and 2 are 2^-7 apart."""

PRINTED = 6e-5
"""Values printed with four decimals are this far from the number they stand for."""

STEPS = 3.0
"""A change of at most this many steps of the rounding may be nothing but rounding."""

_KINDS = (EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.NOISE_CHANGE, EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.DROP)


def examine(view: View) -> Examination:
    """Looks for a loss that takes few values, all of them bf16 numbers, and an event of hardly more than one step of them."""
    found = Examination(view)
    loss = view.curves.get(Role.LOSS)
    if loss is None or len(loss) < WINDOW:
        found.missing.append("a hundred logged losses")
        return found
    if view.event.kind not in _KINDS or view.event.signal != loss.name:
        return found
    at = max(loss.at(view.anchor), WINDOW)
    window = loss.values[at - WINDOW : at]
    distinct = len(np.unique(window))
    if distinct * FEW > WINDOW or distinct < 2 or not _rounded(window):
        return found.exclude(f"the loss takes {distinct} values in {WINDOW} points before the event: it is not rounded to bf16")
    quantum = float(np.ldexp(1.0, int(np.floor(np.log2(np.median(window)))) - BITS))
    steps = abs(view.event.height) / quantum if view.event.height is not None else 1.0
    if steps > STEPS + 0.01:
        return found.exclude(f"the loss changed by {steps:.0f} steps of its rounding ({quantum:g}): more than rounding does")
    found.supports(weights.STRONG, f"the loss takes only {distinct} values in {WINDOW} points, {quantum:g} apart as bf16 has them", Role.LOSS, view.anchor)
    found.supports(weights.SUPPORT, f"the event is {steps:.0f} such steps high", Role.LOSS, view.event.peak_step)
    found.remedy = f"Log the mean loss in float32; read changes below {quantum:g} in this log as no change."
    return found


def _rounded(values: FloatArray) -> bool:
    """All values are bf16 numbers, give or take the digits that were printed."""
    positive = values > 0
    quantum = np.ldexp(1.0, np.floor(np.log2(np.where(positive, values, 1.0))).astype(int) - BITS)
    return bool(positive.all() and (np.abs(values - np.round(values / quantum) * quantum) <= PRINTED).all() and (quantum > 4 * PRINTED).all())
