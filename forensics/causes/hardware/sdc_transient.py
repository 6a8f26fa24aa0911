"""A silent error of the hardware: one computation, one stored number was wrong.

What happened
-------------
A bit flipped in a matrix product, in a stored weight or in a moment, without any message. A wrong gradient is over
after one step; a wrong weight or moment has to be learned away again.

How it shows in logs
--------------------
The gradient norm goes to 10 times its level or more in one step, without a precursor and without another reason in
the log. If a stored number was hit, loss and gradient norm then decay over tens of steps. One rank stands out where
values per rank are logged.
If checkpoints lie beside the log, the first one after the event holds an element far outside its tensor that the one
before it does not have; where one flipped bit explains the value, the bit is named.

What would contradict it
------------------------
No movement of the gradient, a slow change, or a jump of the learning rate exclude it. Growth over three or more
doublings, a rise that ended with its batch, or an event that follows a batch id contradict it. Rare by nature: it
comes last among explanations that fit.

Looks like, but is not
----------------------
bad_batch_outlier: reproduces with the batch.

gradient_explosion_depth: grows over steps.

sdc_persistent: comes back with the same device.

grad_reduction_scale: off by a factor for some steps, exactly normal before and after.

metric_artifact: the log is wrong, not the run.

How to confirm
--------------
Replay the step from the checkpoint before it: it stays calm on the same GPU (R1) and on another (R9), within the
noise band of repeats (R0).

Fix
---
Recompute the step: resume from the checkpoint before it. Watch the node, look for Xid and ECC messages; replace it if
it happens again.

References
----------
Altenbernd et al. 2026, arXiv 2604.00726 (NaN, short spikes, parameter divergence; recomputing helps). Ma et al. 2025,
arXiv 2502.12340 (real unhealthy nodes). Megatron-LM rerun state machine.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.ranks import outlier, per_rank
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="sdc_transient",
    title="Silent data corruption",
    family="hardware",
    part=Part.TRIGGER,
    needs=(Role.GRAD_NORM,),
    replay="replay the step: it stays calm on the same GPU (R1) and on another (R9)",
)


def examine(view: View) -> Examination:
    """Looks for a surge of the gradient by a large factor in one step, without precursor and without another reason."""
    found = Examination(view)
    rotten = () if view.checkpoints.rotten_when_loaded() else view.checkpoints.rotten_since()
    for fact in rotten[:3]:
        found.shows(weights.CHECKPOINT if fact is rotten[0] else weights.HINT, fact)
    found.remedy = "Replay the step (R1): if it is calm, resume from the checkpoint before it and watch the node; look for Xid and ECC messages."
    grad = view.grad
    if grad is None:
        found.missing.append("the gradient norm before clipping, best per rank")
        return found
    reason = "the gradient norm did not move" if grad.onset_step is None else _impossible(view)
    if reason is not None:
        return found if rotten else found.exclude(reason)
    sharp = grad.grew <= 1 or grad.first_factor >= 0.5 * grad.factor
    if grad.factor >= signs.SURGE and sharp and not signs.precursor(view) and signs.unprecedented(view) and not signs.explained_by_loss(view):
        text = f"the gradient norm jumped to {number(grad.first_factor)} times its level within three logged steps, without a precursor"
        found.supports(weights.REQUIRED, text, Role.GRAD_NORM, grad.onset_step)
    elif grad.factor >= signs.SURGE:
        weight = weights.SUPPORT if view.rise is None else weights.HINT
        found.supports(weight, f"the gradient norm went to {number(grad.factor)} times its level", Role.GRAD_NORM, grad.peak_step)
    if signs.gradient_upset(view) and view.rise is not None and signs.sudden(view):
        text = "loss and gradient norm then decayed over tens of steps: a stored number was hit and is being relearned"
        found.supports(weights.SUPPORT, text, Role.GRAD_NORM)
    _ranks(found, view)
    _against(found, view)
    if not view.run.all(Role.RANK_LOSS):
        found.missing.append("loss and gradient norm per rank: one rank stands out when its device erred")
    found.remedy = "Replay the step (R1): if it is calm, resume from the checkpoint before it and watch the node; look for Xid and ECC messages."
    return found


def _ranks(found: Examination, view: View) -> None:
    """One rank that stands out is a device; ranks that all moved together are not."""
    grad = view.grad
    assert grad is not None
    assert grad.onset_step is not None
    stray = next((o for o in (outlier(view.curves, s) for s in dict.fromkeys((grad.onset_step, view.anchor))) if o is not None), None)
    if stray is not None:
        text = f"{stray.name} stands alone at step {stray.step}: {stray.value:.4g}, the other ranks {stray.others:.4g}"
        found.supports(weights.REQUIRED, text, stray.name, stray.step, stray.value)
    elif per_rank(view.curves) and view.rise is not None:
        found.contradicts(weights.DOUBT, "no rank stands out from the others", per_rank(view.curves)[0].name, view.anchor)


def _impossible(view: View) -> str | None:
    if view.event.kind in {EventKind.DRIFT, EventKind.OSCILLATION, EventKind.NOISE_CHANGE}:
        return "a slow change is no single error"
    if view.jump is not None:
        return "the learning rate had just jumped"
    return None


def _against(found: Examination, view: View) -> None:
    grad = view.grad
    assert grad is not None
    if grad.grew >= 3:
        found.contradicts(weights.AGAINST, f"the gradient norm grew over {grad.grew} steps: errors of the hardware do not grow", Role.GRAD_NORM)
    if view.loss is not None and view.rise is not None and view.loss.flash and not signs.brief(view):
        found.contradicts(weights.AGAINST, "nearly all of the rise was gone with the next step: a stored number would stay wrong", Role.LOSS)
    if signs.brief(view):
        found.contradicts(weights.AGAINST, "a bad batch explains a rise that ends with its batch", Role.LOSS)
    if view.recurring is not None and view.recurring.p_value < 0.01:
        found.contradicts(weights.AGAINST, "the event follows a batch", Role.BATCH_ID)
