"""The learning rate is past what the run can bear.

What happened
-------------
Each update moves the weights further than the local shape of the loss allows. Errors grow from step to step instead
of shrinking: the loss spikes again and again, swings, or drifts away. Often it is only the reason why the run was
fragile, and something else decides the moment.

How it shows in logs
--------------------
The onset lies in the warmup while the rate is still climbing, or where it is at its maximum (peak or stable phase, or
at least 0.8 of the maximum). The loss grows over many steps: a divergence, drift or swing, or a rise that ends in
NaN. Three or more events of the sort in one run count further, unless one batch explains them, and most of all if they
come where the rate is high more often than chance puts them there. A rate above 5e-3 (0.5
for plain SGD) is suspicious by itself. Where it is logged, an update-to-weight ratio above 1e-2 agrees; healthy is
near 1e-3.

What would contradict it
------------------------
A single spike that is over with its batch. An onset in the tail, or after the rate fell below 0.3 of its maximum. A
jump of the rate just before, which explains better why it happened now. A gradient that is calm again while the loss
is still up.

Looks like, but is not
----------------------
lr_rewarm_or_jump: the rate rose just before the onset.

lr_warmup_missing: the event comes in the first steps, at full rate.

sharpness_edge: the loss swings but its trend still falls.

bad_batch_outlier: one isolated spike; other batches at the same state are calm.

attention_logit_growth, residual_growth: another norm drifts for thousands of steps before the loss.

How to confirm
--------------
Replay from a checkpoint before the onset with half the learning rate (R6): the event goes. With other batches (R3) it
stays. Then try 0.1 and 0: an event that persists at zero is not the optimizer's.

Fix
---
Halve the peak; divide by up to 10 if it goes on. Rescues of large runs cut to 90 % (calmed the norms once), 67 %, 75
% or 50 %. Or double the warmup. In practice Adam fine-tunes at 1e-5 to 5e-5 and pre-trains at 1e-4 to 3e-4. If
halving only delays the event, as in a public 104B series, look for the cause behind it: initialisation, precision,
data.

References
----------
OPT-175B chronicles (notes at 27 % and 56 %). IDEFICS chronicles. Wortsman et al. 2023, arXiv 2309.14322 (small models
at high rates show the faults of large ones). BigScience tr8-104B logs.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.patterns import Thing
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_too_high",
    title="The learning rate is too high for this run",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LR,),
    replay="replay with half the learning rate: the event goes (R6); with other batches it stays (R3)",
)

NEAR_PEAK = 0.8
"""Share of the maximum at which the learning rate counts as high (catalogue)."""


ABOVE_PLAN = 1.2
"""Factor over the configured maximum from which the rate is not the planned one (the catalogue's jump)."""


def examine(view: View) -> Examination:
    """Looks for instability while the learning rate is at or climbing to its maximum."""
    found = Examination(view)
    kind = view.event.kind
    if view.rise is None and kind not in {EventKind.OSCILLATION, EventKind.NOISE_CHANGE, EventKind.NON_FINITE, EventKind.GRAD_NORM_SURGE}:
        return found
    schedule = view.schedule
    if schedule is None:
        found.missing.append("the learning rate of every step")
    else:
        _schedule(found, view)
    if kind in {EventKind.DIVERGENCE, EventKind.OSCILLATION, EventKind.DRIFT} or (kind is EventKind.NON_FINITE and view.rise is not None):
        found.supports(weights.SUPPORT, "the loss grew over many steps instead of jumping once", Role.LOSS, view.event.peak_step)
    alarms = [i for i in view.incidents if i.event.severity is not Severity.INFO and i.member(*RISING) is not None]
    if len(alarms) >= 3 and view.recurring is None:
        found.supports(weights.SUPPORT, f"the run has {len(alarms)} events of this sort", Role.LOSS)
    often = view.pattern(Thing.LR_HIGH)
    if often is not None and view.recurring is None:
        found.supports(weights.SUPPORT, often.text, Role.LR, view.anchor)
    if signs.brief(view) and signs.dense(view) and (schedule is None or schedule.phase(view.anchor) != "warmup"):
        found.contradicts(weights.AGAINST, "a single isolated spike that was over with its batch", Role.LOSS)
    if view.jump is not None:
        found.contradicts(weights.DOUBT, "the learning rate had just jumped: that explains why now", Role.LR, view.jump.step)
    if signs.gradient_calm_while_loss_away(view) and not signs.back_at_start(view):
        found.contradicts(weights.DOUBT, "the gradient was calm again while the loss was still up", Role.GRAD_NORM)
    at = schedule.at(view.anchor) if schedule is not None else None
    value = f"below {at:.3g}" if at else "lower"
    found.remedy = f"Train with the peak learning rate {value}: halve it first (published rescues cut to 90 %, 67 % or 50 %), or warm up twice as long."
    return found


RISING = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.DIVERGENCE, EventKind.NON_FINITE, EventKind.OSCILLATION, EventKind.LEVEL_SHIFT, EventKind.DRIFT)


def _schedule(found: Examination, view: View) -> None:
    schedule = view.schedule
    assert schedule is not None
    at = schedule.at(view.anchor) or 0.0
    phase = schedule.phase(view.anchor)
    peak = next((c for c in view.checks if c.what == "peak"), None)
    if peak is not None and peak.agrees is False and peak.logged > peak.planned and at > ABOVE_PLAN * peak.planned:
        found.supports(weights.SUPPORT, f"the rate of {at:.3g} is above the configured one: {peak.text}", Role.LR, view.anchor, at)
    limit = signs.usual_lr(view)
    if at >= limit:
        what = "plain SGD usually bears" if signs.plain_sgd(view) else "adaptive optimizers usually bear"
        found.supports(weights.REQUIRED, f"the learning rate was {at:.3g} at the onset, above what {what} ({limit:g})", Role.LR, view.anchor, at)
    if phase == "warmup" and schedule.warmup_steps >= 10:
        found.supports(weights.SUPPORT, f"the loss broke away while the learning rate was still climbing, at {at:.3g}", Role.LR, view.anchor, at)
    elif phase in {"peak", "stable"} or at >= NEAR_PEAK * schedule.peak:
        found.supports(weights.HINT, f"the learning rate was at its maximum ({phase})", Role.LR, view.anchor, at)
    elif phase in {"tail", "zero"} or at < 0.3 * schedule.peak:
        found.contradicts(weights.AGAINST, f"the learning rate had already fallen to {at / schedule.peak:.0%} of its maximum", Role.LR, view.anchor, at)
