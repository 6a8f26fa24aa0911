"""The learning rate jumped, or was warmed up again."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Part
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
        found.supports(weights.HINT, f"the gradient norm followed, x{view.grad.factor:.3g}", Role.GRAD_NORM, view.grad.peak_step)
    if not jump.new_maximum:
        found.contradicts(weights.DOUBT, "the learning rate only returned to a value the run had trained at before", Role.LR, jump.step)
    found.remedy = (
        f"Keep the learning rate at {jump.before:.3g} at step {jump.step}: find what changed it (a second scheduler, an override, a resume that lost the "
        f"scheduler) and resume from a checkpoint before step {jump.step}. If the change is wanted, warm up over 100 to 500 steps."
    )
    return found
