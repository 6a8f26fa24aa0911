"""A sequence that repeats a few tokens many times gives one large, coherent gradient.

What happened
-------------
In highly repetitive text every position pulls the weights the same way, so the gradients of one sequence add up
instead of averaging out. The tokens are easy, so the loss may fall first and spike after the step.

How it shows in logs
--------------------
The gradient norm spikes by 6 sds or more at the step whose batch holds a span with a period of 1 to 13 tokens
repeated at least 32 times. The loss of that step may even be low; the rise comes with the next steps. The same
documents bring it back in later epochs.

Without the tokens the rule has one sign: a batch whose own loss is 3 sds below the level although its gradient surges.

What would contradict it
------------------------
No such span in the batches of the three steps before the onset.

Looks like, but is not
----------------------
bad_batch_outlier: the loss of the batch itself is extreme.

sdc_transient: no batch explains it and a replay is calm.

adam_v_stale: the gradient was quiet for a long time before.

How to confirm
--------------
Scan the tokens of the steps T-3 to T for repeated spans. Replay with the gradient of each sequence apart (R4): one
sequence carries most of the norm. On an earlier state the batch brings back part of the surge (R2).

Fix
---
Drop or mask spans of period 1 to 13 with 32 or more repeats, in the data or in the loader.

References
----------
OLMo-core instance filter (defaults: period 1 to 13, count 32). Reported: OLMo 2, 2025, arXiv 2501.00656, data
section.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.model.words import chance
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="repeated_ngram_docs",
    title="Documents that repeat a short phrase",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS, Role.GRAD_NORM),
    replay="gradient of each sequence apart (R4); at an earlier state the batch brings part of it (R2)",
)

SURGE_Z = 6.0
"""Robust z of the gradient norm at the step of the batch (catalogue)."""

EASY = 3.0
"""Noise sds below its level at which the loss of a batch is clearly low: one sd is chance."""

FOLLOWS = 3
"""Logged steps within which the loss rises after that step."""

CERTAIN = 0.01
"""Chance below which a batch that stands at several events is no coincidence."""


def examine(view: View) -> Examination:
    """Looks for a gradient that surges on a batch whose own loss is low, before the loss rises."""
    found = Examination(view)
    grad, loss = view.grad, view.curves.get(Role.LOSS)
    if grad is None or loss is None:
        found.missing.append("loss and gradient norm of every step")
        return found
    if view.rise is None or view.event.kind not in {EventKind.SPIKE, EventKind.SLOW_SPIKE}:
        return found
    if grad.onset_step is None or grad.z < SURGE_Z:
        return found.exclude("the gradient norm did not surge with the event")
    found.missing.append("the tokens of the batches around the onset, to look for repeated spans")
    if not signs.dense(view):
        found.missing.append("every step logged: the loss of the step of the surge is what tells")
        return found
    at = loss.at(grad.onset_step)
    lead = view.rise.onset_step - grad.onset_step
    if not (1 <= lead <= FOLLOWS and at < len(loss) and loss.steps[at] == grad.onset_step):
        return found
    below = float((loss.centre[max(0, at - 1)] - loss.u[at]) / loss.noise[at])
    if below < EASY:
        return found
    text = f"the batch of step {grad.onset_step} was easy ({below:.1f} sds below the level) and yet its gradient surged; the loss rose {lead} later"
    found.supports(weights.SUPPORT, text, Role.LOSS, grad.onset_step)
    again = view.recurring
    if again is not None and again.p_value < CERTAIN:
        text = f"batch {again.batch_id} stood at {len(again.steps)} events (chance of that: {chance(again.p_value)})"
        found.supports(weights.REQUIRED, text, Role.BATCH_ID, view.onset)
    steps = f"steps {grad.onset_step - 3} to {grad.onset_step}"
    found.remedy = f"Scan the tokens of {steps} for spans of period 1 to 13 that repeat 32 times or more, and drop them."
    return found
