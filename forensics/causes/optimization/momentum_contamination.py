"""One spike of the gradient stays in the moments and goes on hurting.

What happened
-------------
A single extreme gradient enters m and v. m pushes in its direction for about 1/(1 - beta1) steps, and v keeps the
steps of the hit coordinates short for about 1/(1 - beta2) steps. The loss suffers long after the gradient is normal
again.

How it shows in logs
--------------------
The gradient norm reached 50 times its level or more, and the loss rose after that peak rather than with it. Recovery
takes tens to thousands of steps; the update RMS is below 0.5 meanwhile.

What would contradict it
------------------------
No gradient of 50 times the usual excludes it. A recovery within five steps contradicts it.

Looks like, but is not
----------------------
grad_clip_missing: why the spike was let in; both can be true.

adam_v_stale: v is too small before the spike, not too large after it.

resume_weights_wrong: the weights themselves are off.

sdc_transient: what produced the spike.

How to confirm
--------------
Replay with the moments zeroed after the spike (R8): the run recovers faster.

Fix
---
Skip steps whose gradient is far out of range, clip per coordinate where g^2 exceeds 5,000 v, or reset the moments
periodically with a short warmup. Holding the learning rate at 0 for 100 to 300 steps, about 5/(1 - beta2), renews v
gently; it did not save one 104B run.

References
----------
SPAM, Huang et al. 2025, arXiv 2501.06842 (reset intervals reported). BigScience tr8b, experiments 6 and 7 with
embedding norm.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="momentum_contamination",
    title="A gradient spike stayed in the optimizer's moments",
    family="optimization",
    part=Part.AMPLIFIER,
    needs=(Role.GRAD_NORM, Role.LOSS),
    replay="replay with the moments zeroed after the spike: the run recovers faster (R8)",
)

SPIKE = 50.0
"""Factor of the gradient that contaminates the moments for long (catalogue)."""


def examine(view: View) -> Examination:
    """Looks for a very large gradient followed by a loss that stays up after the gradient is normal."""
    found = Examination(view)
    grad, loss = view.grad, view.loss
    if grad is None or loss is None:
        found.missing.append("loss and gradient norm of every step before clipping")
        return found
    if grad.factor < SPIKE:
        return found.exclude(f"no gradient of {SPIKE:g} times the usual came before")
    found.supports(weights.SUPPORT, f"the gradient norm was {number(grad.factor)} times its level at step {grad.peak_step}", Role.GRAD_NORM, grad.peak_step)
    if view.rise is not None and view.rise.onset_step > grad.peak_step:
        found.supports(weights.SUPPORT, f"the loss rose {view.rise.onset_step - grad.peak_step} steps after the gradient was normal again", Role.LOSS)
    found.remedy = "Zero the moments after such a step, skip steps whose gradient is far out of range, or clip per coordinate against v."
    return found
