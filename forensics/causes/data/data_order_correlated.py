"""Consecutive batches are alike, and the training loss follows their composition.

What happened
-------------
A weak permutation, a sampler that walks through sources, or sorted data give stretches of similar batches. The model
drifts towards what it sees at the moment; the training loss wanders with it while the model as a whole gets neither
better nor worse.

How it shows in logs
--------------------
The training loss shifts or waves, often with a period, and the validation loss is flat through it. The share of each
domain per batch is correlated from step to step.

What would contradict it
------------------------
The validation loss moves with the training loss.

Looks like, but is not
----------------------
mixture_shift: one lasting change at a planned point.

train_eval_mode_error: the period equals the evaluation interval.

lr_too_high: the gradient norm is unsettled and the swing grows.

epoch_boundary_step: one step at each epoch.

How to confirm
--------------
Take the samples of the window, shuffle them, and replay (R16): the wave is gone. Compare the period with shard
length, epoch and evaluation interval.

Fix
---
A full shuffle per epoch, or a Feistel permutation over sample indices. In one public 32B run an affine permutation
caused a phase shift near step 190,000; the Feistel permutation removed it.

References
----------
Marin 32B retrospective. OLMo experiment log of 2023 (a wavy loss explained by batch composition).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.patterns import Thing
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="data_order_correlated",
    title="The order of the data is not random enough",
    family="data",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS, Role.VAL_LOSS),
    replay="replay the same samples, shuffled again (R16)",
)

EVALUATIONS = 3
"""Evaluations on either side of the onset that it takes to see whether the held-out loss moved."""

FLAT = 0.2
"""Share of the change of the training loss up to which the held-out loss is flat."""

FOLLOWED = 0.5
"""Share from which it moved as well."""

_KINDS = (EventKind.OSCILLATION, EventKind.PERIODIC, EventKind.LEVEL_SHIFT, EventKind.SLOW_SPIKE, EventKind.NOISE_CHANGE)


def examine(view: View) -> Examination:
    """Looks for a training loss that moves while the held-out loss of the same steps does not."""
    found = Examination(view)
    place = view.pattern(Thing.EPOCH)
    if place is not None and view.event.kind in _KINDS:
        found.supports(weights.SUPPORT, place.text, Role.EPOCH, view.onset, place.value)
    held_out, loss = view.curves.get(Role.VAL_LOSS), view.curves.get(Role.LOSS)
    if held_out is None or loss is None:
        found.missing.append("a held-out loss of the same steps: it is flat where only the order of the data is at fault")
        return found
    if view.event.kind not in _KINDS:
        return found
    at = held_out.at(view.anchor)
    end = held_out.at(view.rise.end_step) if view.rise is not None and view.rise.end_step is not None else len(held_out)
    before, within = held_out.values[max(0, at - 4 * EVALUATIONS) : at], held_out.values[at : min(end, at + 4 * EVALUATIONS)]
    if len(before) < EVALUATIONS or len(within) < EVALUATIONS:
        found.missing.append(f"a held-out loss at least {EVALUATIONS} times before and during the event")
        return found
    first = loss.at(view.anchor)
    train = loss.values[first : first + 200]
    change = float(np.quantile(train, 0.9) - np.median(loss.values[max(0, first - 40) : first]))
    moved = float(np.quantile(within, 0.9) - np.median(before[-EVALUATIONS:]))
    if change <= 0 or moved >= FOLLOWED * change:
        return found.exclude(f"the held-out loss moved with the training loss ({moved:+.3g} against {change:+.3g})")
    if moved > FLAT * change:
        return found
    text = f"the held-out loss did not follow ({moved:+.3g} while the training loss moved by {change:+.3g}): the model did not get worse"
    found.supports(weights.REQUIRED, text, Role.VAL_LOSS, int(held_out.steps[at]))
    if view.grad is not None and (view.grad.onset_step is None or view.grad.echo <= signs.CALM):
        found.supports(weights.SUPPORT, "the gradient norm was calm", Role.GRAD_NORM)
    elif view.grad is not None:
        found.contradicts(weights.DOUBT, "the gradient norm is unsettled", Role.GRAD_NORM)
    if view.event.kind in {EventKind.OSCILLATION, EventKind.PERIODIC}:
        found.supports(weights.HINT, "the training loss comes and goes", Role.LOSS)
    found.missing.append("the share of each domain per batch")
    found.remedy = "Shuffle fully per epoch (or use a Feistel permutation over sample indices), and compare the period with shard and epoch lengths."
    return found
