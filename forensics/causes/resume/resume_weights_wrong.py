"""The weights after the resume are not those before it.

What happened
-------------
A stale, partial or corrupt checkpoint was loaded, shards were mixed up, averaged weights were taken for raw ones, or
stored weights were damaged. The model computes with other weights and has to learn again.

How it shows in logs
--------------------
The first loss after a resume is already off, before any update. Loss and gradient norm leave their level together and
stay up; half of the rise takes 6 logged points or more, or never goes. Without a resume in the log the same picture
can come from damaged weights, with less weight.
The checkpoint that was loaded holds an element far outside its tensor, or one that is not finite.

What would contradict it
------------------------
A loss that was back at once or a jump of the learning rate excludes it. First losses that were still right, a
gradient that was soon calm, or one that led the loss contradict it.

Looks like, but is not
----------------------
resume_optimizer_lost: the first losses are right.

mixture_shift: the gradient is calm.

adam_v_stale: recovers faster.

sdc_transient: a single damaged number, a larger factor of the gradient.

train_eval_mode_error: tied to evaluations.

How to confirm
--------------
Compare the checkpoint's tensors with those of the one before, and with hashes if there are any (R11, forensics diff).
Load the previous checkpoint: the loss is right.

Fix
---
Resume from the last good checkpoint. Write checkpoints atomically with checksums, and keep several.

References
----------
OPT-175B chronicles (partial uploads). IDEFICS chronicles (a suspicion about a node that remapped memory while
saving).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.correlate.checkpoint_evidence import CheckpointFact
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_weights_wrong",
    title="The weights are not the ones that were saved",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="compare the checkpoint's tensors with the one before (R11)",
)

SLOW_POINTS = 6
"""Half-life in logged points from which damaged weights are likelier than one large step."""


def examine(view: View) -> Examination:
    """Looks for a loss that is off at once with an upset gradient, and relearns slowly."""
    found = Examination(view)
    loss, grad = view.loss, view.grad
    rotten = _checkpoint(found, view)
    found.remedy = _remedy(view)
    if view.rise is None or loss is None or view.event.kind in {EventKind.DRIFT, EventKind.NON_FINITE}:
        return found
    reason = None if rotten else _impossible(view)
    if reason is not None:
        return found.exclude(reason)
    resumed = view.resume is not None
    if resumed:
        step = view.resume if isinstance(view.resume, int) else view.resume.first_step  # type: ignore[union-attr]
        if view.anchor <= step:
            found.supports(weights.STRONG, f"the first loss after the resume at step {step} is already off, before any update", Role.LOSS, step)
        else:
            found.contradicts(weights.AGAINST, f"the first losses after the resume at step {step} were still right", Role.LOSS, step)
    else:
        found.contradicts(-0.5, "no resume is visible in the log")
        found.missing.append("marks of a resume: wall times, process starts, checkpoint loads")
    if signs.gradient_upset(view):
        found.supports(weights.SUPPORT, "loss and gradient norm left their level together and stayed up: the weights are not where they were", Role.GRAD_NORM)
    elif signs.gradient_calm_while_loss_away(view):
        found.contradicts(weights.AGAINST, "the gradient was soon calm while the loss was still up", Role.GRAD_NORM)
    _relearning(found, view, loss.half_life)
    if signs.precursor(view):
        found.contradicts(weights.AGAINST, "the gradient norm moved before the loss", Role.GRAD_NORM)
    if grad is not None and grad.factor >= signs.SURGE and not resumed:
        found.contradicts(-0.5, f"a gradient of {number(grad.factor)} times its level points at a single damaged element", Role.GRAD_NORM, grad.peak_step)
    return found


def _remedy(view: View) -> str:
    good = view.checkpoints.last_good
    last = f"the last one before step {view.anchor}" if good is None else f"the last sound one, of step {good.step}: {good.checkpoint.path}"
    return f"Compare the checkpoint with the one before it, tensor by tensor (forensics diff), and resume from {last}."


def _impossible(view: View) -> str | None:
    if signs.brief(view):
        return "the loss was back at once: the weights are what they were"
    return None if view.jump is None else "the learning rate had just jumped"


def _checkpoint(found: Examination, view: View) -> bool:
    """What the checkpoint that was loaded shows; True if it holds rotten numbers."""
    rotten, loaded = view.checkpoints.rotten_when_loaded(), view.checkpoints.loaded
    for fact in rotten[:3]:
        found.shows(weights.CHECKPOINT if fact is rotten[0] else weights.HINT, fact)
    if loaded is not None and loaded.good and not rotten:
        text = f"every number of the checkpoint of step {loaded.step}, which was loaded, is sound (another model's, or stale ones, would be as well)"
        found.shows(weights.DOUBT, CheckpointFact(text, loaded.step, loaded.checkpoint.path))
    return bool(rotten)


def _relearning(found: Examination, view: View, half_life: int | None) -> None:
    """Damaged weights are learned again, but not at once."""
    if signs.nothing_relearned(view):
        found.contradicts(weights.DOUBT, "the loss kept its new level: weights that were damaged are learned again", Role.LOSS)
    elif half_life is None or half_life >= SLOW_POINTS:
        slow = "never came back" if half_life is None else f"took {half_life} logged steps to lose half of its rise"
        found.supports(weights.SUPPORT, f"the loss {slow}, as when weights must be learned again", Role.LOSS)
