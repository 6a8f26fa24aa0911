"""The run is weakest just after the end of the warmup."""

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
