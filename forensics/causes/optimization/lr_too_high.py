"""The learning rate is past what the run can bear."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
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

HIGH_ADAPTIVE = 5e-3
"""Adam-like optimizers rarely train above this (practice: 1e-5 to 1e-3)."""

HIGH_SGD = 0.5
"""Plain SGD with momentum rarely trains above this."""

NEAR_PEAK = 0.8
"""Share of the maximum at which the learning rate counts as high (catalogue)."""


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
    if signs.brief(view) and signs.dense(view) and (schedule is None or schedule.phase(view.anchor) != "warmup"):
        found.contradicts(weights.AGAINST, "a single isolated spike that was over with its batch", Role.LOSS)
    if view.jump is not None:
        found.contradicts(weights.DOUBT, "the learning rate had just jumped: that explains why now", Role.LR, view.jump.step)
    if signs.gradient_calm_while_loss_away(view):
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
    limit = HIGH_SGD if view.settings.adaptive is False else HIGH_ADAPTIVE
    if at >= limit:
        what = "plain SGD" if view.settings.adaptive is False else "Adam-like optimizers"
        found.supports(weights.REQUIRED, f"the learning rate was {at:.3g} at the onset, above what {what} usually bear ({limit:g})", Role.LR, view.anchor, at)
    if phase == "warmup" and schedule.warmup_steps >= 10:
        found.supports(weights.SUPPORT, f"the loss broke away while the learning rate was still climbing, at {at:.3g}", Role.LR, view.anchor, at)
    elif phase in {"peak", "stable"} or at >= NEAR_PEAK * schedule.peak:
        found.supports(weights.HINT, f"the learning rate was at its maximum ({phase})", Role.LR, view.anchor, at)
    elif phase in {"tail", "zero"} or at < 0.3 * schedule.peak:
        found.contradicts(weights.AGAINST, f"the learning rate had already fallen to {at / schedule.peak:.0%} of its maximum", Role.LR, view.anchor, at)
