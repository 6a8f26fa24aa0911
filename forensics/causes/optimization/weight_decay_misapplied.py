"""Decay shrinks embeddings, norms or biases, or is absent where weights need it.

What happened
-------------
Decay on embeddings, norm gains or biases shrinks their scale; the gradient through them then grows, because the
layers behind normalise. Without any decay, weights such as the output head grow until late training breaks at a low
learning rate.

How it shows in logs
--------------------
Either the embedding or norm-gain norm drifts down while the gradient norm of early layers drifts up, or the output
head and total parameter norms drift up through the low-learning-rate tail, followed by a late divergence. Both take
thousands of steps; there is no sharp trigger.

What would contradict it
------------------------
Norms of all parameter groups are stationary.

Looks like, but is not
----------------------
tail_grad_growth: the gradient norm rises near the end with a slope of about -1/2 against the learning rate and the
loss still falls; benign.

output_logit_divergence: the log-partition drifts with the head.

lr_decay_too_slow: gradient and activation norms drift, weight norms do not.

How to confirm
--------------
List the parameter groups with their decay and compare with the intent. Compare group norms across three checkpoints.
Replay with the group frozen or with its decay changed (R14).

Fix
---
No decay on embeddings, norms and biases; 0.1 elsewhere (0.01 to 0.1 is the usual range). Against growth of the head:
z-loss, which stopped one published late divergence, though others saw no gain from it at 1B.

References
----------
SmolLM3 training playbook (no decay on embeddings). Marin 8B report (late divergence at low learning rate stopped by
z-loss). Reported: OLMo 2, 2025, arXiv 2501.00656.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import logged, part_of, trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="weight_decay_misapplied",
    title="Weight decay acts on the wrong parameters",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.PARAM_NORM_GROUP,),
    replay="replay with the group frozen, or with its decay changed (R14)",
)

SHRUNK = 0.8
"""Factor to which the norm of a group that should not decay has fallen."""

GROWN = 1.25
"""Factor to which head or total norm has grown."""

LOW_LR = 0.3
"""Share of its maximum below which the learning rate is that of the late part of a run."""

SPARED = ("embed", "embedding", "embeddings", "emb", "wte", "norm", "ln", "layernorm", "rmsnorm", "bias", "gain")
HEAD = ("head", "output", "unembed")
"""Words that name groups which usually have no decay, and the output head."""

_KINDS = (EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE)


def examine(view: View) -> Examination:
    """Looks for norms of parameter groups that drifted before the event."""
    found = Examination(view)
    if not logged(view, Role.PARAM_NORM_GROUP):
        found.missing.append("the norm of every parameter group, with its weight decay")
        return found
    if view.event.kind not in _KINDS:
        return found
    norms = view.curves.every(Role.PARAM_NORM_GROUP, Role.PARAM_NORM)
    trends = [(s, t) for s, t in ((s, trend_before(s, view.anchor)) for s in norms) if t is not None]
    shrinking = [t for s, t in trends if t.factor <= SHRUNK and _spared(s.name, part_of(s, *SPARED))]
    growing = [t for s, t in trends if t.factor >= GROWN and (part_of(s, *HEAD) or s.role == Role.PARAM_NORM)]
    if not shrinking and not growing:
        return found.exclude("the norms of embeddings, norm layers and head were stationary before the event")
    for trend in shrinking[:1]:
        text = f"{trend.name} fell from {trend.start:.4g} to {trend.end:.4g} since step {trend.first_step}: it decays"
        found.supports(weights.SUPPORT, text, Role.PARAM_NORM_GROUP, trend.last_step, trend.end)
        grad = trend_before(view.curves.get(Role.GRAD_NORM), view.anchor)
        if grad is not None and grad.rises:
            found.supports(weights.SUPPORT, f"the gradient norm rose meanwhile, from {grad.start:.3g} to {grad.end:.3g}", Role.GRAD_NORM, grad.last_step)
    rate = view.schedule.at(view.anchor) if view.schedule is not None else None
    late = view.schedule is not None and rate is not None and rate <= LOW_LR * view.schedule.peak
    for trend in growing[:1]:
        text = f"{trend.name} grew from {trend.start:.4g} to {trend.end:.4g} since step {trend.first_step}"
        found.supports(weights.SUPPORT, text, Role.PARAM_NORM_GROUP, trend.last_step, trend.end)
        if late:
            found.supports(weights.HINT, f"at a learning rate of only {rate:.2g}", Role.LR, view.anchor)
        if view.settings.weight_decay == 0:
            found.set_for(weights.SUPPORT, "weight decay is off", "weight_decay")
    found.missing.append("the weight decay of every parameter group")
    found.remedy = "No decay on embeddings, norms and biases, 0.1 elsewhere (usual range 0.01 to 0.1); against growth of the head a z-loss."
    return found


def _spared(name: str, named: bool) -> bool:
    """A group that should not decay. The word norm in "param_norm/..." says what is measured, not of what."""
    own = name.lower().replace("param_norm", "").replace("weight_norm", "").replace("params/norm", "")
    return named and any(word in own for word in SPARED)
