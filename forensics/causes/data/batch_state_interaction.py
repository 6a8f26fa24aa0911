"""A harmless batch met a fragile state.

What happened
-------------
Neither the batch nor the weights alone are bad. Their combination gives an update that hurts: another batch at this
state, or this batch at another state, would have passed. Something else made the state fragile.

How it shows in logs
--------------------
The gradient norm leaves its level at least one step before the loss, and the run often recovers by itself within 50
logged points. It needs every step logged: at a coarser interval a lead is unknown.

What would contradict it
------------------------
The same batch at several events (then it is the batch), a jump of the learning rate, a gradient that was calm while
the loss was up, or a brief spike with nothing before it.

Looks like, but is not
----------------------
bad_batch_outlier: the batch is bad at any state.

adam_v_stale: the fragile state has a name, a second moment that forgot.

gradient_explosion_depth: the gradient doubles step after step.

attention_logit_growth: the logits drifted for long before.

sdc_transient: nothing reproduces.

How to confirm
--------------
Three replays decide: the event comes back unchanged (R1), does not come with this batch at a state 100 to 500 steps
earlier (R2), and does not come with other batches at this state (R3).

Fix
---
Restart about 100 steps before the onset and skip 200 to 500 batches. Then look for what made the state fragile:
learning rate, beta2, logits.

References
----------
PaLM 2022, section 5.1 (about 20 spikes at 540B with clipping on; the skipped batches were harmless elsewhere).
SmolLM3 training playbook. A Falcon run skipped one billion tokens.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="batch_state_interaction",
    title="An ordinary batch met a fragile state",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="the event comes back (R1), but neither the batch at an earlier state (R2) nor other batches at this one (R3) bring it",
)


OFTEN = 4
"""Other steps of a batch from which its good behaviour there counts."""


def examine(view: View) -> Examination:
    """Looks for a spike with a precursor in the gradient."""
    found = Examination(view)
    if view.rise is None or view.event.kind in {EventKind.DRIFT, EventKind.OSCILLATION, EventKind.NON_FINITE}:
        return found
    if signs.precursor(view):
        found.supports(weights.REQUIRED, f"the gradient norm left its level {view.grad_lead} steps before the loss", Role.GRAD_NORM)
    if view.event.recovered and view.loss is not None and view.loss.half_life is not None and view.loss.half_life <= 50:
        found.supports(weights.HINT, "the run recovered by itself", Role.LOSS)
    if view.recurring is not None and view.recurring.p_value < 0.01:
        found.contradicts(weights.AGAINST, "the same batch caused the event at other states too", Role.BATCH_ID)
    again = view.habit
    if again is not None and again.times >= OFTEN and again.worse <= again.times // 5:
        text = f"batch {again.batch_id} did no harm at its {again.times} other steps: it met another state there"
        found.supports(weights.SUPPORT, text, Role.BATCH_ID, view.onset)
    elif again is not None and again.p_value < 0.01:
        found.contradicts(weights.AGAINST, f"batch {again.batch_id} is bad at its other steps too", Role.BATCH_ID, view.onset)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.gradient_calm_while_loss_away(view):
        found.contradicts(weights.DOUBT, "the gradient was calm while the loss was still up", Role.GRAD_NORM)
    if signs.brief(view) and not signs.precursor(view):
        found.contradicts(weights.DOUBT, "nothing in the log shows a fragile state before it", Role.GRAD_NORM)
    found.missing.append("a replay of the batch on an earlier state (R2): only that tells a fragile state from a bad batch")
    found.remedy = "Restart about 100 steps before the onset and skip 200 to 500 batches; the batches themselves need not be bad."
    return found
