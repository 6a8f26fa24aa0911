"""The batch itself is bad: garbage, a corrupt file, wrong labels.

What happened
-------------
Some samples of the batch have an extreme loss: random bytes, a broken encoding, values on the wrong scale. The model
is fine; it was shown something it cannot predict. Usually the loss is normal again with the next batch.

How it shows in logs
--------------------
The loss jumps without a precursor and is back as soon as the batch is over: half of the rise is gone within 4 logged
points, and at most a quarter is left some points later. The gradient norm rises at the same step. The strongest sign
is a batch id that stands at several events of the run although chance would hardly put it there (p < 0.01), or a shard
that does at three or more. A batch that comes in several epochs is worse than others in each of them.

What would contradict it
------------------------
A loss that needs longer or never comes back, a gradient norm that left its level two or more steps earlier, a
gradient that did not move, a batch that did no harm at its other steps, a jump of the learning rate, a loss scale that
collapsed at the same time, or a run still in its first steps.

Looks like, but is not
----------------------
sdc_transient: also one step, but a replay is calm.

batch_state_interaction: the same batch is harmless on another state.

repeated_ngram_docs: the gradient surges, the loss of the batch may be low.

metric_artifact: the other logger shows nothing.

mixture_shift: the new data go on.

How to confirm
--------------
Give the batch to an earlier, healthy state (R2): it spikes there too. Other batches at this state do not (R3). The
loss of every sample names the culprits (R4): 8 sds or more above the rest. At a learning rate of 0 the batch still
has its high loss (R6).

Fix
---
Skip the batches of the event and look at their samples; repair the filter that let them through. A skip-step rule
(loss or gradient norm above mean + 6 sds of the last 128) protects against the next.

References
----------
SmolLM3 training playbook (bad data are the main cause of spikes that recover). ML engineering notes (public book),
loss patterns. OLMo-core skip-step optimizer.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.patterns import Thing
from forensics.model import EventKind, Part
from forensics.model.words import chance
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="bad_batch_outlier",
    title="A bad batch",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="the batch spikes at an earlier state too (R2), other batches do not (R3), losses per sample name the culprits (R4)",
)

CERTAIN = 0.01
"""Chance below which a batch that stands at several events is no coincidence."""


OFTEN = 4
"""Other steps of a batch from which its good behaviour there counts."""


def examine(view: View) -> Examination:
    """Looks for a spike that begins without a precursor and ends with its batch, and for a batch that comes back."""
    found = Examination(view)
    loss, grad = view.loss, view.grad
    if view.rise is None or loss is None or view.event.kind in {EventKind.DIVERGENCE, EventKind.DRIFT, EventKind.OSCILLATION}:
        return found
    _recurrence(found, view)
    _elsewhere(found, view)
    if signs.brief(view):
        points = max(loss.points_up or 1, 1)
        text = f"the loss was back at its level after {points} logged step{'s' if points > 1 else ''}"
        found.supports(weights.REQUIRED, text, Role.LOSS, view.rise.peak_step)
        if loss.factor >= 1.5:
            found.supports(weights.HINT, f"it reached {loss.factor:.2f} times its level at once", Role.LOSS, loss.peak_step)
    elif loss.flash and signs.dense(view):
        text = "nearly all of the rise was gone with the next steps; what rose after that is the answer to that one update"
        found.supports(weights.REQUIRED, text, Role.LOSS, view.rise.onset_step)
    elif signs.lingering(view):
        half = "never came back" if loss.half_life is None else f"needed {loss.half_life} logged steps to lose half of its rise"
        found.contradicts(weights.AGAINST, f"the loss {half}: a bad batch ends with the batch", Role.LOSS)
    if grad is not None and grad.onset_step is not None:
        _gradient(found, view)
    elif grad is not None:
        found.contradicts(-0.5, "the gradient norm did not move", Role.GRAD_NORM)
    _instead(found, view)
    if view.curves.get(Role.BATCH_ID) is None:
        found.missing.append("the batch or sample ids of every step, to name the batch")
    found.missing.append("the loss of every sample of the batch (R4 computes it)")
    found.remedy = f"Skip the batches of steps {max(view.first_step, view.onset - 1)} to {view.rise.peak_step} and look at their samples."
    return found


def _instead(found: Examination, view: View) -> None:
    """What the log shows that explains the event better."""
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.young(view) and view.recurring is None:
        found.contradicts(weights.DOUBT, "the run is in its first steps, where the step size is a likelier reason than the data", Role.LOSS)
    if signs.lr_above_usual(view) and view.recurring is None:
        found.contradicts(weights.DOUBT, "the learning rate is above what such optimizers usually bear: ordinary batches do this then", Role.LR, view.anchor)
    if view.resume is not None:
        found.contradicts(weights.DOUBT, "the run was resumed just before: what was lost there is a likelier reason", Role.LOSS)
    if signs.scale_burst(view):
        found.contradicts(weights.DOUBT, "the loss scale collapsed at the same time", Role.LOSS_SCALE)


def _recurrence(found: Examination, view: View) -> None:
    again = view.recurring
    if again is not None and again.p_value < CERTAIN:
        steps = ", ".join(str(s) for s in again.steps)
        text = f"batch {again.batch_id} stood at the events of steps {steps} (chance of that: {chance(again.p_value)})"
        found.supports(weights.STRONG, text, Role.BATCH_ID, view.onset)


def _elsewhere(found: Examination, view: View) -> None:
    """The same data at other steps: a batch that is bad is bad whenever it comes."""
    again = view.habit
    if again is not None and again.p_value < CERTAIN:
        text = f"batch {again.batch_id} is among the worst tenth at {again.worse} of its {again.times} other steps (chance of that: {chance(again.p_value)})"
        found.supports(weights.STRONG if view.recurring is None else weights.HINT, text, Role.BATCH_ID, view.onset)
    elif again is not None and again.times >= OFTEN and again.worse <= again.times // 5:
        text = f"batch {again.batch_id} did no harm at its {again.times} other steps"
        found.contradicts(weights.DOUBT, text, Role.BATCH_ID, view.onset)
    shard, place = view.pattern(Thing.SHARD), view.pattern(Thing.EPOCH)
    if shard is not None and view.recurring is None:
        found.supports(weights.REQUIRED, shard.text, shard.signal, view.onset, shard.value)
    elif place is not None and view.recurring is None and again is None:
        found.supports(weights.SUPPORT, place.text, Role.EPOCH, view.onset, place.value)


def _gradient(found: Examination, view: View) -> None:
    grad = view.grad
    assert grad is not None
    lead = view.grad_lead
    if lead is None:
        found.missing.append("every step logged: at this interval it is unknown whether the gradient led the loss")
    elif lead >= 2 and signs.precursor(view):
        found.contradicts(weights.AGAINST, f"the gradient norm left its level {lead} steps before the loss", Role.GRAD_NORM, grad.onset_step)
    else:
        found.supports(weights.HINT, "the gradient norm rose at the same step, without a precursor", Role.GRAD_NORM, grad.onset_step)
