"""The batch is so small that its noise rules the loss.

What happened
-------------
The gradient of a few examples points mostly in the direction of those examples. Loss and gradient norm jump from step
to step although the model improves steadily on average.

How it shows in logs
--------------------
The noise of the loss grew at a step at which the logged batch size is 4 or less. In a run with small batches
throughout, the loss has almost no correlation from step to step, and a moving average over 20 points falls smoothly;
this version does not alarm on that.

What would contradict it
------------------------
A larger logged batch size excludes it. A swing with a period is not noise.

Looks like, but is not
----------------------
loss_mask_error: fewer counted tokens make the same noise.

lr_too_high: the swing grows, and a lower rate calms it.

worker_rng_duplicate: the batch is smaller than it looks.

sharpness_edge: a periodic swing.

How to confirm
--------------
Accumulate over eight steps: the standard deviation of the loss falls by the square root of eight. Compare runs: noise
times the root of the batch size is constant.

Fix
---
A larger batch or accumulation, up to the critical batch size; it may grow during training.

References
----------
Common practice. Reported: McCandlish et al. 2018.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="batch_noise_small",
    title="The noise of a small batch",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.BATCH_SIZE,),
    replay="accumulate over eight steps: the noise falls by the root of eight",
)

SMALL = 4
"""Sequences per batch below which the noise of single examples shows."""


def examine(view: View) -> Examination:
    """Looks for noise that came with a small batch."""
    found = Examination(view)
    noisier = view.incident.member(EventKind.NOISE_CHANGE, EventKind.OSCILLATION)
    if noisier is None or noisier.kind is EventKind.OSCILLATION:
        return found
    sizes = view.curves.get(Role.BATCH_SIZE)
    if sizes is None:
        found.missing.append("the batch size of every step")
        return found
    after = float(sizes.values[min(sizes.at(noisier.onset_step + 1), len(sizes) - 1)])
    if after > SMALL:
        return found.exclude(f"the batch size is {after:g}")
    found.supports(weights.SUPPORT, f"{noisier.text}, at a batch size of {after:g}", Role.LOSS, noisier.onset_step)
    found.remedy = "Use a larger batch, or accumulate gradients over eight steps; the noise falls with the root of the batch size."
    return found
