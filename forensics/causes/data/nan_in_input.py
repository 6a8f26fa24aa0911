"""A NaN came in with the data.

What happened
-------------
An input or target is NaN or infinite, or preprocessing divided by zero. The loss of that batch is NaN in any
precision, and one update with it ruins every weight it touches.

How it shows in logs
--------------------
The loss is NaN or infinite from one step to the next; loss, gradient norm and loss scale were normal until the step
before. If the step was skipped, the next values are normal; if not, everything after it is NaN.

What would contradict it
------------------------
A loss that was already rising, or a burst of loss-scale halvings, excludes it. A gradient norm that rose before the
NaN contradicts it.

Looks like, but is not
----------------------
numeric_domain_error: looks the same in the log; the inputs are finite.

loss_mask_error: a batch without any target gives a NaN that heals.

fp16_activation_overflow, loss_scale_collapse: growth or halvings before.

eps_flush_fp16: the first bad tensor is a weight.

sdc_transient: not reproducible.

How to confirm
--------------
Scan inputs and targets of the step (R4). The NaN comes at any state (R2), at a learning rate of 0, and in any
precision (R5).

Fix
---
Drop or repair the sample, resume from the checkpoint before it, and assert finite inputs in the loader.

References
----------
Common practice. The rule is our own.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="nan_in_input",
    title="NaN or infinite values in the input",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="scan the inputs of the step (R4); the NaN comes at any state (R2) and any precision (R5)",
)


def examine(view: View) -> Examination:
    """Looks for a NaN that came out of nothing: loss, gradient and loss scale normal until the step before."""
    found = Examination(view)
    broken = view.incident.member(EventKind.NON_FINITE)
    if broken is None:
        return found
    if view.rise is not None and view.rise.onset_step < broken.onset_step:
        return found.exclude(f"the loss was already rising from step {view.rise.onset_step}: it grew into the NaN")
    if signs.scale_burst(view):
        return found.exclude("the loss scale fell in a burst: the overflow is in the scaled gradients")
    loss = view.curves.get(Role.LOSS)
    if loss is not None and loss.name == broken.signal:
        found.supports(weights.REQUIRED, f"{broken.text}; the loss was normal until the step before", Role.LOSS, broken.onset_step)
    else:
        found.supports(weights.HINT, broken.text, None, broken.onset_step)
    grad = view.grad
    surge = view.incident.member(EventKind.GRAD_NORM_SURGE)
    if grad is not None and (surge is None or surge.onset_step >= broken.onset_step):
        found.supports(weights.SUPPORT, "the gradient norm was normal until the step before", Role.GRAD_NORM, broken.onset_step - 1)
    elif surge is not None:
        found.contradicts(weights.AGAINST, f"the gradient norm had been rising since step {surge.onset_step}", Role.GRAD_NORM, surge.onset_step)
    if broken.recovered:
        found.supports(weights.HINT, "the next logged steps are normal again: one batch, not the weights", Role.LOSS, broken.end_step)
    found.missing.append("whether the inputs and targets of that step are finite")
    found.remedy = f"Check the batch of step {broken.onset_step} for NaN, infinities, and divisions by zero; assert finite inputs in the loader."
    return found
