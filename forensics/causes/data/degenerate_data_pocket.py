"""A low-quality shard or one very long file fills batch after batch.

What happened
-------------
Data that was not shuffled finely enough delivers one source, one file or one broken shard for many steps in a row.
The model is well, but it is being fed something else until the pocket is over.

How it shows in logs
--------------------
The loss moves to another level for exactly as many steps as the pocket is long, then returns to its old trend without
any change of the learning rate. The loss of one source moves, the others stay; the gradient norm is calm after the
first steps.

The rule asks for 12 logged points or more, 0.7 of the height left at the end, and that height gone within four points.

What would contradict it
------------------------
The losses of all sources move together. The rise ends without any relation to positions in the data.

Looks like, but is not
----------------------
mixture_shift: does not end by itself.

data_order_correlated: comes in waves over the whole run.

batch_state_interaction: the gradient rises before the loss.

label_noise_or_shuffle: the loss of part of every batch is at chance.

How to confirm
--------------
Replay the window with its samples shuffled over a longer stretch (R16): the event spreads out and disappears. On an
earlier healthy state the same batches are as bad (R2).

Fix
---
Shuffle at the level of sequences, not of files. Skip the range, or filter the shard again before going on.

References
----------
SmolLM3 training playbook (third mystery: sequence shuffling). IDEFICS chronicle, 2023-05-30 (only one source's loss
rose). Megatron option to skip a range of training iterations.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.trends import Prepared, sources
from forensics.model import Event, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="degenerate_data_pocket",
    title="A stretch of poor data",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="replay the window in shuffled order: the event goes (R16); at an earlier state it is as bad (R2)",
)

SHORTEST = 12
"""Logged points below which it is a batch or two and no pocket."""

HELD = 0.35
"""Share of the first height that is left when the pocket ends, for some of it is learned, and then is gone at once."""

GONE = 0.7
"""Share of that rest that is gone at once: a model that recovers comes down gradually."""

CLEAR = 4.0
"""Height in noise sds of single points from which such an end can be told from noise."""

EDGE = 4
"""Points on either side of the end that must lie on two levels."""

_KINDS = (EventKind.SPIKE, EventKind.SLOW_SPIKE)


def examine(view: View) -> Examination:
    """Looks for a rise that holds its height and ends at one step, with a calm gradient and an unchanged learning rate."""
    found = Examination(view)
    loss, rise = view.curves.get(Role.LOSS), view.rise
    if loss is None or rise is None:
        found.missing.append("the loss of every step")
        return found
    if view.event.kind not in _KINDS or rise.end_step is None:
        return found
    end = _end(loss, rise)
    if end is None:
        return found.exclude("the rise did not hold its height and end at one step, as a stretch of other data does")
    points = loss.at(end) - loss.at(rise.onset_step)
    found.supports(weights.REQUIRED, f"the loss held its height for {points} logged steps and was back at step {end} at once", Role.LOSS, end)
    if signs.gradient_calm_while_loss_away(view) or (view.grad is not None and view.grad.onset_step is None):
        found.supports(weights.SUPPORT, "the gradient norm was calm while the loss was up: the model is well", Role.GRAD_NORM, rise.onset_step)
    elif signs.gradient_upset(view):
        found.contradicts(weights.DOUBT, "the gradient norm stayed up with the loss", Role.GRAD_NORM)
    if view.schedule is not None:
        changed = [d for d in (*view.schedule.drops, *view.schedule.ups) if abs(d.step - end) <= 3 * view.every]
        if changed:
            found.contradicts(weights.AGAINST, f"the learning rate changed at step {changed[0].step}, where the rise ended", Role.LR, changed[0].step)
        else:
            found.supports(weights.HINT, "the learning rate did not change where it ended", Role.LR, end)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.precursor(view):
        found.contradicts(weights.DOUBT, "the gradient norm moved before the loss", Role.GRAD_NORM)
    _sources(found, view)
    found.remedy = f"Look at the data of steps {rise.onset_step} to {end}; skip or filter that stretch, and shuffle sequences instead of files."
    return found


def _sources(found: Examination, view: View) -> None:
    split = sources(view)
    if split is None:
        found.missing.append("the loss per data source: in a pocket one source moves and the others do not")
    elif split.moved and split.calm:
        found.supports(weights.SUPPORT, f"of the losses per source only {', '.join(split.moved[:3])} moved", Role.LOSS_BY_SOURCE)
    elif split.moved:
        found.contradicts(weights.AGAINST, "the losses of all sources moved together", Role.LOSS_BY_SOURCE)


def _end(loss: Prepared, rise: Event) -> int | None:
    """The step at which the loss fell back at once from most of its height; None where it came down otherwise."""
    assert rise.end_step is not None
    first, last = loss.at(rise.onset_step), loss.at(rise.end_step)
    before = loss.u[max(0, first - 40) : first]
    if last - first < SHORTEST or len(before) < EDGE:
        return None
    base = float(np.median(before))
    height = float(np.median(loss.u[first : first + SHORTEST])) - base
    if height < CLEAR * float(np.median(loss.noise[max(0, first - 40) : first])):
        return None
    for k in range(min(last + EDGE, len(loss) - EDGE), first + SHORTEST - 1, -1):
        held, gone = float(np.median(loss.u[k - EDGE : k])) - base, float(np.median(loss.u[k : k + EDGE])) - base
        if held >= HELD * height and held - gone >= GONE * held:
            j = max(range(k - EDGE, min(k + EDGE, len(loss))), key=lambda j: float(loss.u[j - 1] - loss.u[j]))
            return int(loss.steps[j])
    return None
