"""The data changed: another domain, another mix, another stage of the curriculum.

What happened
-------------
From a step on the model sees other data. Its loss on them is higher because they are new or harder, and it falls as
they are learned. Weights, moments and step size are in order.

How it shows in logs
--------------------
The loss goes to a new level within three logged points and stays, or comes down slowly as in learning (half of the
rise takes 8 points or more). The gradient norm is soon normal again (within 1.4 of its level) while the loss still
holds 0.4 of its first height: the model is well. A level shift without any movement of the gradient counts as well.
Losses per source, where logged, each stay continuous.

What would contradict it
------------------------
A loss that is back at once excludes it. A gradient norm of 10 times its level, one that stays up with the loss or led
it, a jump of the learning rate, a collapse of the loss scale, or a divergence contradict it.

Looks like, but is not
----------------------
degenerate_data_pocket: ends after a fixed number of samples.

label_noise_or_shuffle: never comes down.

resume_data_or_rng_lost: begins at a resume.

resume_weights_wrong: the gradient stays up as well.

data_order_correlated: comes and goes; the validation loss is flat.

How to confirm
--------------
Evaluate the old and the new data on the same checkpoint from before the step: the new data have the higher loss there
too.

Fix
---
If planned, mark the step and compare per source. If not, look at what the loader read from that step on.

References
----------
SmolLM3 training playbook (a mix in three stages). IDEFICS chronicles (spikes driven by the ratio of sources).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="mixture_shift",
    title="The data distribution changed",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS,),
    replay="evaluate the old and the new data on the same checkpoint",
)


def examine(view: View) -> Examination:
    """Looks for a lasting rise of the loss with a gradient that is soon calm again."""
    found = Examination(view)
    loss, grad = view.loss, view.grad
    if view.event.kind is EventKind.DROP:
        found.supports(weights.SUPPORT, "the loss fell to a new level at once: other data may be easier", Role.LOSS, view.anchor)
        found.missing.append("the loss per data source")
        return found
    if view.rise is None or loss is None or view.event.kind is EventKind.NON_FINITE:
        return found
    if signs.brief(view):
        return found.exclude("the loss was back at once: the data after it are the same as before")
    if signs.gradient_calm_while_loss_away(view):
        text = "the gradient norm was soon normal while the loss was still up: the model is well, the data are new to it"
        found.supports(weights.HINT if view.event.kind is EventKind.SPIKE else weights.REQUIRED, text, Role.GRAD_NORM)
    elif view.event.kind is EventKind.LEVEL_SHIFT and grad is not None and grad.onset_step is None:
        found.supports(weights.REQUIRED, "the loss moved to a new level and the gradient norm did not move", Role.GRAD_NORM)
    if signs.sudden(view) and view.event.kind is not EventKind.DRIFT:
        found.supports(weights.SUPPORT, "the loss was on its new level within three logged steps", Role.LOSS, view.anchor)
    if loss.half_life is None or loss.half_life >= 8:
        found.supports(weights.HINT, "it came down slowly, as in learning", Role.LOSS)
    if loss.settled < 0.95 and loss.settled_z < -6:
        found.supports(weights.HINT, f"and went on to {loss.settled:.2f} times its old level", Role.LOSS)
    _against(found, view)
    if not view.run.all(Role.LOSS_BY_SOURCE):
        found.missing.append("the loss per data source: in a shift of the mix each stays continuous")
    found.remedy = "If the change was planned, mark it and compare per source. If not, look at what the loader read from this step on."
    return found


def _against(found: Examination, view: View) -> None:
    grad = view.grad
    if view.checkpoints.rotten_since():
        found.contradicts(weights.AGAINST, "the next checkpoint holds a rotten number: the model is not well")
    if signs.explained_by_loss(view):
        found.supports(weights.HINT, "the gradient norm rose no more than the loss: the errors are larger, not the weights other", Role.GRAD_NORM)
    elif grad is not None and grad.factor >= signs.SURGE and signs.unprecedented(view):
        found.contradicts(weights.AGAINST, f"the gradient norm rose to {number(grad.factor)} times its level", Role.GRAD_NORM, grad.peak_step)
    elif signs.gradient_upset(view):
        found.contradicts(weights.DOUBT, "the gradient norm stayed up with the loss", Role.GRAD_NORM)
    if signs.precursor(view):
        found.contradicts(weights.DOUBT, "the gradient norm moved before the loss", Role.GRAD_NORM)
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.scale_burst(view):
        found.contradicts(weights.AGAINST, "the loss scale collapsed at the same time", Role.LOSS_SCALE)
    if view.event.kind is EventKind.SPIKE:
        found.contradicts(weights.DOUBT, "the loss was soon back at its old level: a lasting change of the data does not go back", Role.LOSS)
    if signs.back_at_start(view) and signs.nothing_relearned(view):
        found.contradicts(weights.AGAINST, "the loss stands where it stood before training: new data would bring it higher, and be learned", Role.LOSS)
    if view.event.kind is EventKind.DIVERGENCE:
        found.contradicts(weights.DOUBT, "new data do not make a loss diverge", Role.LOSS)
