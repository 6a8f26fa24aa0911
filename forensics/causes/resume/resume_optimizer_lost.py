"""The run was resumed without the optimizer's state.

What happened
-------------
Weights were restored, moments or the step count were not. Adam starts with empty moments: its first update has full
length in every coordinate, about lr x sign(gradient), and the weights are thrown off.

How it shows in logs
--------------------
A rise of the loss within 20 logged points after a resume (a new attempt, or a pause over 20 usual steps). The first
losses after the resume are right, then the loss rises; gradient norm normal at first, learning rate continuous. Where
the log has a gap before the event, the resume may lie in it. With an ordinary gradient the step before, and a loss that
stays while the next steps are skipped, one update did the damage.
In the checkpoints after the resume the optimizer's own step count began again, while the first loss was right.

What would contradict it
------------------------
No resume near excludes it. A loss that was off at the first step, before any update, contradicts it.

Looks like, but is not
----------------------
resume_weights_wrong: the first loss is already off.

resume_scheduler_lost: the learning rate jumps at the resume.

resume_data_or_rng_lost: the gradient is calm, and it happens at every resume.

config_edit: a setting changed with the restart.

lr_warmup_missing: the same at the start of a run.

How to confirm
--------------
Audit the checkpoint (R11): step count 0, empty or much smaller second moments. With the state loaded the replay is
calm.

Fix
---
Save and load all of it. If it is lost: hold the learning rate at 0 for 5/(1 - beta2) steps while the moments fill, or
re-warm over 100 to 500 steps.

References
----------
BigScience tr8b (an option silently ignored; the step of a group not saved). Lightning issue 10766, NeMo Automodel
763.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.checkpoint_evidence import CheckpointFact
from forensics.correlate.resumes import Across, Mark
from forensics.model import Absent, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_optimizer_lost",
    title="The optimizer's state was lost at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="audit the optimizer's state in the checkpoint (R11): with it loaded there is no event",
)


RESET_STEPS = 5
"""Steps between the resume and the place where the optimizer's count began again: the first ones may be skipped by a scaler."""

SAME_LOSS = 1e-4
"""Relative difference of two computations of one loss: summing in another order changes less, one update more."""

NORMAL = 2.0
"""Factor over its level within which the gradient norm of a step is normal."""


def examine(view: View) -> Examination:
    """Looks for a rise within 20 logged steps of a resume, with a first loss that was still right."""
    found = Examination(view)
    restart = view.restart
    lost = _state_lost(found, view)
    found.remedy = "Load the optimizer's state; if it is lost, hold the learning rate at 0 for 5/(1-beta2) steps, or re-warm over 100 to 500."
    if restart is None:
        return found if lost else found.exclude("no resume within 20 logged steps before the onset")
    went_on = view.checkpoints.count_went_on()
    if went_on is not None:
        return found.exclude(went_on.text)
    if view.rise is None and not lost:
        return found
    step = restart.step
    if restart.mark is Mark.GAP:
        assert view.gap is not None
        found.supports(weights.HINT, f"steps {view.gap[0] + 1} to {view.gap[1] - 1} are not in the log: a resume there would not show", Role.LOSS, step)
        found.missing.append("marks of a resume: wall times, process starts")
    else:
        found.supports(weights.REQUIRED, f"the run was resumed at step {step}, {view.anchor - step} steps before the onset", Role.LOSS, step)
    if view.rise is None:
        first, both = restart.fact(Role.LOSS), _loss_of_both_passes(view, step)
        if both is not None:
            text = f"the loss of step {step} is {both:.7g} in both passes: the weights were right at the first forward after the resume"
            found.supports(weights.REQUIRED, text, Role.LOSS, step)
        elif first is not None and first.across is Across.CONTINUED:
            found.supports(weights.SUPPORT, f"{first.text}: the weights were right at the first forward after the resume", Role.LOSS, step)
    elif view.anchor > step:
        found.supports(weights.SUPPORT, "the loss was still normal at the first steps after the resume, then rose: the weights were right", Role.LOSS, step)
    else:
        found.contradicts(weights.AGAINST, "the loss was already off at the first step after the resume, before any update", Role.LOSS, step)
    if signs.lr_steady(view):
        found.supports(weights.HINT, "the learning rate is continuous across the resume", Role.LR, step)
    _thrown_off(found, view)
    if not lost:
        found.missing.append("the optimizer's step count and second moments in the checkpoint")
    return found


def _loss_of_both_passes(view: View, step: int) -> float | None:
    """The loss of a step that was done twice, where both times agree to the digits that a sum in another order changes."""
    signal = view.run.signal(Role.LOSS)
    if isinstance(signal, Absent):
        return None
    values = signal.values[signal.steps == step].astype(float)
    if len(values) < 2 or abs(values[-1] - values[-2]) > SAME_LOSS * abs(values[-2]):
        return None
    return float(values[-1])


def _state_lost(found: Examination, view: View) -> bool:
    """The checkpoints show that the optimizer began anew."""
    reset, bare = view.checkpoints.count_reset(), view.checkpoints.without_optimizer()
    restart = view.anchor if view.checkpoints.restart is None else view.checkpoints.restart
    if reset is not None and abs(reset.began - restart) <= RESET_STEPS:
        found.shows(weights.CHECKPOINT, CheckpointFact(reset.text, reset.after.step, reset.after.checkpoint.path, reset.count))
        return True
    if bare is not None:
        found.shows(weights.STRONG, bare)
        return True
    return False


def _thrown_off(found: Examination, view: View) -> None:
    """One update with an ordinary gradient threw the weights off: its length came from the optimizer, not from the gradient."""
    grad, loss = view.curves.get(Role.GRAD_NORM), view.loss
    if grad is None or loss is None or not signs.dense(view) or not signs.sudden(view) or signs.brief(view):
        return
    at = grad.at(view.anchor)
    before = grad.values[max(0, at - 20) : at]
    if len(before) < 3 or grad.steps[at - 1] < view.anchor - 2 or before[-1] > NORMAL * float(np.median(before)):
        return
    text = f"the gradient norm of the step before was ordinary ({before[-1]:.3g}), and yet one update took the loss to {loss.peak:.4g}"
    found.supports(weights.SUPPORT, text, Role.GRAD_NORM, int(grad.steps[at - 1]))
    if signs.held_while_skipped(view):
        found.supports(weights.SUPPORT, "the steps after it were skipped and the loss stayed: the damage was done by that one update", Role.LOSS_SCALE)
