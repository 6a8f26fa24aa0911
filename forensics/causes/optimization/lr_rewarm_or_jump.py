"""The learning rate jumped, or was warmed up again.

What happened
-------------
A restarted schedule, a second scheduler, an override or a new stage raised the learning rate in mid-run. The model
sat in a valley that fits small steps; larger ones carry it out, and it must come down again at the new rate or is
lost.

How it shows in logs
--------------------
The learning rate rises by a factor of 1.2 or more after the warmup, at one logged step or as a ramp, from shortly
before the onset to its first steps. It weighs most when it goes above everything before. The loss rises at the jump
or some steps later, and the gradient norm follows. With a modest ramp the loss comes down again by itself; old and
new data both get worse for a while.

What would contradict it
------------------------
A learning rate that did not rise around the onset excludes it. A rate that only returned to a value the run had
trained at before speaks against it: cosine restarts and stages do that, usually without harm.

Looks like, but is not
----------------------
resume_scheduler_lost: the jump stands at a resume; that is its explanation, not its rival.

batch_size_change_unscaled: the batch changed, the rate did not.

lr_too_high: the rate did not change before the onset.

resume_optimizer_lost: a resume with a continuous rate.

How to confirm
--------------
Replay from before the jump with the old learning rate (R6): the event goes. Audit the scheduler's state in the
checkpoint (R11): its step count or base rate is wrong.

Fix
---
Keep the rate continuous: find what changed it, and resume from a checkpoint before the jump. If it is wanted, as in
continued pre-training, warm up over 100 to 500 steps to a lower maximum, mix in 1 to 5 % of old data, and expect a
temporary rise. Planned drops of multi-step and warmup-stable-decay schedules are not events.

References
----------
Gupta et al. 2023, arXiv 2308.04014. Ibrahim et al. 2024, arXiv 2403.08763. IDEFICS chronicles, experiments 9 and 10
(the trajectory was silently restarted).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="lr_rewarm_or_jump",
    title="The learning rate jumped or was warmed up again",
    family="optimization",
    part=Part.TRIGGER,
    needs=(Role.LR,),
    replay="replay from before the jump with the old learning rate (R6); audit the scheduler in the checkpoint (R11)",
)


def examine(view: View) -> Examination:
    """Looks for an upward change of the learning rate just before or at the onset."""
    found = Examination(view)
    if view.schedule is None:
        found.missing.append("the learning rate of every step")
        return found
    jump = view.jump
    if jump is None:
        return found.exclude("the learning rate did not rise around the onset")
    how = f"the learning rate went from {jump.before:.3g} to {jump.after:.3g} (x{jump.factor:.3g}) at step {jump.step}"
    found.supports(weights.STRONG if jump.new_maximum else weights.REQUIRED, how, Role.LR, jump.step)
    lag = view.anchor - jump.step
    if view.rise is not None and lag >= 0:
        found.supports(weights.SUPPORT, f"the loss rose {lag} step{'' if lag == 1 else 's'} after it", Role.LOSS, view.anchor)
    if view.grad is not None and view.grad.onset_step is not None and view.grad.onset_step >= jump.step:
        found.supports(weights.HINT, f"the gradient norm followed, x{number(view.grad.factor)}", Role.GRAD_NORM, view.grad.peak_step)
    if not jump.new_maximum:
        found.contradicts(weights.DOUBT, "the learning rate only returned to a value the run had trained at before", Role.LR, jump.step)
    found.remedy = (
        f"Keep the learning rate at {jump.before:.3g} at step {jump.step}: find what changed it (a second scheduler, an override, a resume that lost the "
        f"scheduler) and resume from a checkpoint before step {jump.step}. If the change is wanted, warm up over 100 to 500 steps."
    )
    return found
