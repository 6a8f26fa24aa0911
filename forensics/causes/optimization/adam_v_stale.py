"""The second moment is too small for the gradient that comes: Adam takes a giant step."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="adam_v_stale",
    title="Adam's second moment was stale",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.LOSS,),
    replay="replay with beta2 0.95 or clipped updates: the event goes (R8); at an earlier state it does not come (R2)",
)

SLOW_BETA2 = 0.98
"""From this beta2 on the second moment remembers long enough to be stale (catalogue)."""

QUICK_POINTS = 8
"""Half-life of the rise after one step that was too large; damaged weights take longer to relearn."""


def examine(view: View) -> Examination:
    """Looks for a rise with an upset gradient and a fast recovery, and no other reason in the log."""
    found = Examination(view)
    loss, grad, settings = view.loss, view.grad, view.settings
    if settings.adaptive is False:
        return found.exclude(f"the optimizer ({settings.optimizer}) keeps no second moment")
    if view.rise is None or loss is None or view.event.kind in {EventKind.DRIFT, EventKind.DIVERGENCE, EventKind.NON_FINITE}:
        return found
    found.missing.append("update RMS per tensor, rms(g/sqrt(v)): it passes 2 one to eight steps before this event")
    if signs.brief(view) and signs.dense(view):
        return found.exclude("the loss was back as soon as the batch was over: the weights were not thrown off")
    if signs.gradient_upset(view):
        found.supports(weights.SUPPORT, "the gradient norm rose with the loss and stayed up: a step threw the weights off", Role.GRAD_NORM)
    elif grad is not None and grad.onset_step is not None and grad.factor >= 2 and not signs.gradient_calm_while_loss_away(view):
        found.supports(weights.SUPPORT, f"the gradient norm rose with the loss, x{grad.factor:.3g}", Role.GRAD_NORM, grad.peak_step)
    if loss.half_life is not None and 1 < loss.half_life <= QUICK_POINTS and grad is not None and grad.factor < signs.SURGE:
        found.supports(weights.SUPPORT, f"half of the rise was gone after {loss.half_life} logged steps", Role.LOSS)
    elif loss.half_life is not None and grad is not None and grad.echo <= 1.4 and grad.factor >= 2 and view.event.recovered:
        found.supports(weights.HINT, "the gradient norm calmed within a few steps", Role.GRAD_NORM)
    if settings.beta2 is not None:
        if settings.beta2 >= SLOW_BETA2:
            found.supports(weights.SUPPORT, f"beta2 is {settings.beta2:g}, a memory of {1 / (1 - settings.beta2):.0f} steps", value=settings.beta2)
        else:
            found.contradicts(-0.5, f"beta2 is {settings.beta2:g}: the second moment forgets within {1 / (1 - settings.beta2):.0f} steps", value=settings.beta2)
    _others(found, view)
    found.remedy = "Set beta2 to 0.95 or clip the update (divide the learning rate by max(1, RMS(g/sqrt(v))) per tensor, as StableAdamW does)."
    return found


def _others(found: Examination, view: View) -> None:
    """What the log shows instead."""
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.gradient_calm_while_loss_away(view):
        found.contradicts(weights.AGAINST, "the gradient was calm while the loss was still up", Role.GRAD_NORM)
    if view.grad is not None and view.grad.factor >= signs.SURGE:
        found.contradicts(weights.DOUBT, f"a gradient of {view.grad.factor:.3g} times the usual is more than one large step brings", Role.GRAD_NORM)
    if view.schedule is not None and view.schedule.phase(view.anchor) == "warmup":
        found.contradicts(weights.DOUBT, "during warmup the second moment is young, not stale", Role.LR)
