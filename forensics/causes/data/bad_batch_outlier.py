"""The batch itself is bad: garbage, a corrupt file, wrong labels."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="bad_batch_outlier",
    title="A bad batch",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="the batch spikes at an earlier state too (R2), other batches do not (R3), losses per sample name the culprits (R4)",
)

CERTAIN = 0.01
"""Chance below which a batch that stands at several events is no coincidence."""


def examine(view: View) -> Examination:
    """Looks for a spike that begins without a precursor and ends with its batch, and for a batch that comes back."""
    found = Examination(view)
    loss, grad = view.loss, view.grad
    if view.rise is None or loss is None or view.event.kind in {EventKind.DIVERGENCE, EventKind.DRIFT, EventKind.OSCILLATION}:
        return found
    again = view.recurring
    if again is not None and again.p_value < CERTAIN:
        steps = ", ".join(str(s) for s in again.steps)
        text = f"batch {again.batch_id} stood at the events of steps {steps} (chance of that: {again.p_value:.1g})"
        found.supports(weights.STRONG, text, Role.BATCH_ID, view.onset)
    if signs.brief(view):
        points = max(loss.points_up or 1, 1)
        text = f"the loss was back at its level after {points} logged step{'s' if points > 1 else ''}"
        found.supports(weights.REQUIRED, text, Role.LOSS, view.rise.peak_step)
        if loss.factor >= 1.5:
            found.supports(weights.HINT, f"it reached {loss.factor:.2f} times its level at once", Role.LOSS, loss.peak_step)
    elif signs.lingering(view):
        half = "never came back" if loss.half_life is None else f"needed {loss.half_life} logged steps to lose half of its rise"
        found.contradicts(weights.AGAINST, f"the loss {half}: a bad batch ends with the batch", Role.LOSS)
    if grad is not None and grad.onset_step is not None:
        _gradient(found, view)
    elif grad is not None:
        found.contradicts(-0.5, "the gradient norm did not move", Role.GRAD_NORM)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.young(view) and again is None:
        found.contradicts(weights.DOUBT, "the run is in its first steps, where the step size is a likelier reason than the data", Role.LOSS)
    if signs.scale_burst(view):
        found.contradicts(weights.DOUBT, "the loss scale collapsed at the same time", Role.LOSS_SCALE)
    if view.curves.get(Role.BATCH_ID) is None:
        found.missing.append("the batch or sample ids of every step, to name the batch")
    found.missing.append("the loss of every sample of the batch (R4 computes it)")
    found.remedy = f"Skip the batches of steps {max(view.first_step, view.onset - 1)} to {view.rise.peak_step} and look at their samples."
    return found


def _gradient(found: Examination, view: View) -> None:
    grad = view.grad
    assert grad is not None
    lead = view.grad_lead
    if lead is None:
        found.missing.append("every step logged: at this interval it is unknown whether the gradient led the loss")
    elif lead >= 2:
        found.contradicts(weights.AGAINST, f"the gradient norm left its level {lead} steps before the loss", Role.GRAD_NORM, grad.onset_step)
    else:
        found.supports(weights.HINT, "the gradient norm rose at the same step, without a precursor", Role.GRAD_NORM, grad.onset_step)
