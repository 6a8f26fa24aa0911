"""The run is weakest just after the end of the warmup.

What happened
-------------
Gradient variance and second moments are near their largest when the ramp ends, and the steps are the longest of the
whole run. A disturbance that would pass later, or earlier, throws the run off here.

How it shows in logs
--------------------
The onset falls into a window around the end of the warmup: from 0.1 of its length before to 0.3 of its length after
(at least five logged points). In float16 runs the loss scale often sinks before it.

What would contradict it
------------------------
The onset is elsewhere, or there was no warmup of at least 10 steps: excluded. Events that also come long after the
warmup speak for lr_too_high.

Looks like, but is not
----------------------
lr_too_high: events all along the peak and stable phase.

lr_warmup_missing: no ramp at all, or a very short one.

scale_growth_trigger: the loss scale doubled just before.

lr_rewarm_or_jump: a second rise of the rate.

How to confirm
--------------
Replay with a lower learning rate (R6), with a warmup twice as long, or with beta2 0.95 (R8).

Fix
---
Double the warmup, lower the peak, or warm up the sequence length as well; beta2 0.95.

References
----------
BigScience tr8-104B logs, experiments 1 and 2 (7,000 and 6,900 steps, just after the ramp) and tr1-13B (ramp over near
25,000, spike at 29,000). Li et al. 2022, arXiv 2108.06084 (sequence length warmup).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_peak_instability",
    title="Instability at the peak of the learning rate",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LR,),
    replay="replay with a lower learning rate (R6), or with beta2 0.95 (R8)",
)

WINDOW = 0.3
"""Share of the warmup length after its end in which the run is weakest (catalogue)."""


def examine(view: View) -> Examination:
    """Looks for a rise of the loss within 0.3 warmup lengths of the end of the warmup."""
    found = Examination(view)
    schedule = view.schedule
    if view.rise is None and view.event.kind is not EventKind.NON_FINITE:
        return found
    if schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    end = int(schedule.steps[schedule.warmup_end])
    reach = max(WINDOW * schedule.warmup_steps, 5 * view.every)
    if schedule.warmup_steps < 10 or not end - 0.1 * schedule.warmup_steps <= view.anchor <= end + reach:
        return found.exclude(f"the onset is not within {WINDOW:g} warmup lengths of the end of the warmup (step {end})")
    found.supports(weights.REQUIRED, f"the onset is {view.anchor - end} steps after the warmup ended at step {end}", Role.LR, end)
    later = [i for i in view.incidents if i.event.severity is not Severity.INFO and i.event.onset_step > end + 5 * reach]
    if later:
        found.contradicts(weights.DOUBT, f"spikes also come long after the warmup (step {later[0].event.onset_step})", Role.LOSS, later[0].event.onset_step)
    found.remedy = f"Warm up twice as long (now {schedule.warmup_steps} steps), or lower the peak of {schedule.peak:.3g}; beta2 0.95."
    return found
