"""An operation left its domain: log of zero, a division by a vanishing norm.

What happened
-------------
One operation met an argument it is not defined for: log(0), the derivative of sqrt at 0, exp of a large number, a
division by a norm of 0. Inputs are finite, nothing grew; the result is NaN or infinite in any precision.

How it shows in logs
--------------------
A NaN without any growth before it and without a burst of loss-scale halvings. The log alone cannot tell it from a NaN
in the data.

What would contradict it
------------------------
A loss that was already rising, or a burst of halvings, excludes it. Non-finite inputs mean nan_in_input.

Looks like, but is not
----------------------
nan_in_input: the batch itself is not finite.

loss_mask_error: the mean over no target.

eps_flush_fp16: in the optimizer, with float16 states.

fp16_activation_overflow: growth before, only in float16.

How to confirm
--------------
The first non-finite module of a replay names the operation. A guard in it (R14) removes the event; higher precision
does not (R5).

Fix
---
An epsilon or a clamp inside log, sqrt, division and normalisation; outside it is too late for the derivative.

References
----------
The rule is our own. Tools with the same aim: Hugging Face DebugUnderflowOverflow, LightlyTrain.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="numeric_domain_error",
    title="An operation left its domain",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="guard the operation (R14); higher precision changes nothing (R5)",
)


def examine(view: View) -> Examination:
    """Looks for a NaN without any growth before it; the log alone cannot tell it from a NaN in the input."""
    found = Examination(view)
    broken = view.incident.member(EventKind.NON_FINITE)
    if broken is None:
        return found
    if view.rise is not None and view.rise.onset_step < broken.onset_step:
        return found.exclude("the loss was already rising before the NaN")
    if view.incident.member(EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE) is not None:
        return found.exclude("the loss scale fell in a burst: the overflow is in the scaled gradients")
    found.supports(weights.SUPPORT, f"{broken.text}, without any growth before it", Role.LOSS, broken.onset_step)
    found.missing.append("the first non-finite module (a replay's microscope names it)")
    found.remedy = "Guard log, sqrt, division and normalisation with an epsilon inside the operation."
    return found
