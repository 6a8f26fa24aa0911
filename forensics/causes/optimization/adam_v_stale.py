"""The second moment is too small for the gradient that comes: Adam takes a giant step.

What happened
-------------
While gradients are quiet, the second moment v decays. The first large gradient is divided by a v that has forgotten
what large means, and the update is many times too long. The weights are thrown off, v catches up, and the run usually
recovers.

How it shows in logs
--------------------
The loss rises with the gradient norm, which stays up for some points, by less than 10 times; half of the rise is gone
within 8 logged points. beta2 is 0.98 or more, a memory of 50 steps and up. The proof is rarely logged: the update
RMS, rms(g / sqrt(v)), of some tensor, often the embedding, passes 2 one to eight steps before the loss rises.

What would contradict it
------------------------
An optimizer without second moments excludes it, as does a loss that was back as soon as its batch was over. A smaller
beta2, an onset during warmup, a jump of the learning rate, a gradient that was calm while the loss was up, or a surge
of 10 times and more speak against it.

Looks like, but is not
----------------------
batch_state_interaction: the gradient leads, and skipping the batches helps.

attention_logit_growth: update spikes lead too, but clipping updates does not cure it.

embedding_grad_surge: the gradient, not the divisor, is extreme.

resume_weights_wrong: relearning takes longer.

sdc_transient: a far larger factor, and not reproducible.

How to confirm
--------------
Replay with beta2 0.95 or with clipped updates (R8): the event goes. On an earlier state the same batches are harmless
(R2). The replay's probe measures rms(g / sqrt(v)) per tensor.

Fix
---
Set beta2 to 0.95, or divide the learning rate per tensor by max(1, rms(g / sqrt(v))), as StableAdamW does. Advice
conflicts: in one public 104B series beta2 0.95 did not save the run, and in a 32B run clipping updates did not stop
the spikes, because attention logits grew.

References
----------
Wortsman et al. 2023, arXiv 2304.13013 (loss spikes follow spikes of the update RMS by 1 to 8 steps; reported:
threshold 2.3, 14 of 15 spikes explained). Bai et al. 2025, arXiv 2506.04805. BigScience notes. Marin 32B
retrospective.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import EventKind, Part
from forensics.model.words import number
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
        found.supports(weights.SUPPORT, f"the gradient norm rose with the loss, x{number(grad.factor)}", Role.GRAD_NORM, grad.peak_step)
    if loss.half_life is not None and 1 < loss.half_life <= QUICK_POINTS and grad is not None and grad.factor < signs.SURGE:
        found.supports(weights.SUPPORT, f"half of the rise was gone after {loss.half_life} logged steps", Role.LOSS)
    elif loss.half_life is not None and grad is not None and grad.echo <= 1.4 and grad.factor >= 2 and view.event.recovered:
        found.supports(weights.HINT, "the gradient norm calmed within a few steps", Role.GRAD_NORM)
    if settings.beta2 is not None:
        if settings.beta2 >= SLOW_BETA2:
            found.set_for(weights.SUPPORT, f"beta2 is {settings.beta2:g}, a memory of {1 / (1 - settings.beta2):.0f} steps", "beta2")
        else:
            found.set_against(-0.5, f"beta2 is {settings.beta2:g}: the second moment forgets within {1 / (1 - settings.beta2):.0f} steps", "beta2")
    _others(found, view)
    found.remedy = "Set beta2 to 0.95 or clip the update (divide the learning rate by max(1, RMS(g/sqrt(v))) per tensor, as StableAdamW does)."
    return found


def _others(found: Examination, view: View) -> None:
    """What the log shows instead."""
    if view.jump is not None:
        found.contradicts(weights.AGAINST, "the learning rate had just jumped", Role.LR, view.jump.step)
    if signs.gradient_calm_while_loss_away(view):
        weight = weights.DOUBT if view.event.kind is EventKind.SPIKE else weights.AGAINST
        found.contradicts(weight, "the gradient was calm while the loss was still up", Role.GRAD_NORM)
    if signs.nothing_relearned(view):
        found.contradicts(weights.AGAINST, "the loss kept its new level: one large step is made good", Role.LOSS)
    if view.grad is not None and view.grad.factor >= signs.SURGE:
        text = f"a gradient of {number(view.grad.factor)} times the usual is more than one large step brings"
        found.contradicts(weights.DOUBT, text, Role.GRAD_NORM, view.grad.peak_step)
    if view.schedule is not None and view.schedule.phase(view.anchor) == "warmup":
        found.contradicts(weights.DOUBT, "during warmup the second moment is young, not stale", Role.LR)
