"""The scaler looks for its scale: a few skipped steps at the start, or one per growth interval. Harmless.

What happened
-------------
Dynamic loss scaling starts high, overflows, and halves until gradients fit. Later it tries a doubling after every
clean interval, and takes it back if that overflows.

How it shows in logs
--------------------
Halvings only in the first 50 logged points and before any growth: from 2^32 to 2^16 takes 16 halvings, twice as many
skips with a hysteresis of 2. Or one skip per growth interval (1,000 or 2,000 steps). The loss does nothing.

What would contradict it
------------------------
A burst in mid-run, or any event of the loss with it, excludes it.

Looks like, but is not
----------------------
fp16_grad_overflow: a burst in mid-run.

resume_scaler_reset: the same search after a resume.

scale_growth_trigger: a doubling that was followed by a loss event.

How to confirm
--------------
None needed.

Fix
---
None. Start at 2^16 to avoid the first skips.

References
----------
Megatron-LM arguments (start 2^32, window 1,000, hysteresis 2, minimum 1). The counts are arithmetic.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="scale_calibration_skips",
    title="Ordinary calibration of the loss scale",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="none needed",
    info=(EventKind.LOSS_SCALE_DROP,),
)


def examine(view: View) -> Examination:
    """Looks for a fall of the scale in the first steps that touched nothing else."""
    found = Examination(view)
    burst = view.incident.member(EventKind.LOSS_SCALE_DROP)
    if burst is None:
        if view.curves.get(Role.LOSS_SCALE) is None and view.settings.half_precision:
            found.missing.append("the loss scale of every step")
        return found
    if burst.severity is not Severity.INFO or view.rise is not None:
        return found.exclude("a burst in mid-run, or with an effect on the loss, is no calibration")
    found.supports(weights.STRONG, burst.text, Role.LOSS_SCALE, burst.onset_step)
    found.remedy = "Nothing: a scale of 2^32 needs 16 halvings to reach 2^16."
    return found
