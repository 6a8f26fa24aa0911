"""Causes of the family optimization that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="adam_correlated_updates",
        title="Adam's updates became correlated in time",
        family="optimization",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.UPDATE_RMS, Role.UW_RATIO, Role.GRAD_NORM_GROUP, "second moments in a checkpoint", "per-step histogram of updates"),
        replay="replay with epsilon 1e-15 (R8), a lower learning rate (R6), or the early layers frozen (R14)",
        manual="""
Gradients near epsilon become correlated from step to step, and Adam's updates grow without pointing downhill.

What happened
In some layers, often early ones, gradients shrink towards Adam's epsilon. Numerator and denominator then move
together, the updates of many coordinates take the same extreme value step after step, and the update grows long while
it no longer follows the descent direction.

How it shows in logs
The share of coordinates with sqrt(v) below 10 epsilon rises. A histogram of one step's updates has two peaks near +1
and -1 instead of one hump at 0. The update-to-weight ratio climbs while the gradient norm is flat or falling. Large
batches and deep models are most exposed; the loss shifts up or drifts away.

What would contradict it
sqrt(v) is far above epsilon in every tensor, and the histogram of updates has a single hump.

Looks like, but is not
adam_v_stale: a large gradient meets a small v, and the gradient norm rises with the loss; here the gradient stays
small.

lr_too_high: update and gradient grow together.

attention_logit_growth: the attention logits drift first.

How to confirm
From the checkpoint before the drift, replay with epsilon at 1e-15 or 0 (R8), with half the learning rate (R6), and
with the early layers frozen (R14). Which of them calms the run names the mechanism.

Fix
Lower the learning rate, lower epsilon (only with float32 states), use a smaller batch, or skip the batches of the
event. Advice on epsilon conflicts between published runs: test, do not assume.

References
Molybog et al. 2023, arXiv 2304.09871 (runs from 7B to 546B). On the conflict about epsilon: OLMo 2, 2025, and
Wortsman et al. 2023, arXiv 2309.14322, favour smaller values; AdaGC 2025, arXiv 2502.11034, reports that smaller
values provoke spikes.
""",
    ),
    Unseen(
        id="adam_eps_too_large",
        title="Adam's epsilon is as large as the second moment",
        family="optimization",
        part=Part.SUSCEPTIBILITY,
        needs=("second moments in a checkpoint", "epsilon in the configuration", Role.UW_RATIO, Role.LOSS),
        replay="replay with epsilon divided by 100 (R8)",
        manual="""
Epsilon is comparable to sqrt(v), so some layers hardly move.

What happened
Adam divides by sqrt(v) + epsilon. Where gradients are small, epsilon dominates the divisor and the update becomes
plain, tiny gradient descent: those layers stop learning while others go on.

How it shows in logs
In one group of layers the median of sqrt(v) is less than ten times epsilon, and its update-to-weight ratio is below
1e-5 (healthy is near 1e-3). The loss sits on a plateau that gets worse with larger width or learning rate, because
gradients per parameter shrink.

What would contradict it
The ratio of sqrt(v) to epsilon is above 100 everywhere.

Looks like, but is not
lr_too_low_or_zero: all layers stall alike.

optimizer_not_stepping: weights of the group are bit-equal, not merely slow.

bf16_update_stall: updates have the right size but are rounded away.

How to confirm
Read v from a checkpoint, compare the median of sqrt(v) with epsilon per layer, then replay a few hundred steps with
epsilon divided by 100 (R8) and watch the update-to-weight ratio of the stalled group.

Fix
Use 1e-8, down to 1e-15 when the optimizer states are float32; one published recipe went from 1e-5 to 1e-8. Watch for
spikes afterwards: another published study reports that smaller epsilon and larger beta2 provoke them.

References
Wortsman et al. 2023, arXiv 2309.14322 (gradient RMS against epsilon; partly reported, not re-read here). OLMo 2,
2025, arXiv 2501.00656. Conflicting: AdaGC 2025, arXiv 2502.11034.
""",
    ),
    Unseen(
        id="weight_decay_misapplied",
        title="Weight decay acts on the wrong parameters",
        family="optimization",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.PARAM_NORM_GROUP, Role.GRAD_NORM_GROUP, "weight decay of every parameter group"),
        replay="replay with the group frozen, or with its decay changed (R14)",
        manual="""
Decay shrinks embeddings, norms or biases, or is absent where weights need it.

What happened
Decay on embeddings, norm gains or biases shrinks their scale; the gradient through them then grows, because the
layers behind normalise. Without any decay, weights such as the output head grow until late training breaks at a low
learning rate.

How it shows in logs
Either the embedding or norm-gain norm drifts down while the gradient norm of early layers drifts up, or the output
head and total parameter norms drift up through the low-learning-rate tail, followed by a late divergence. Both take
thousands of steps; there is no sharp trigger.

What would contradict it
Norms of all parameter groups are stationary.

Looks like, but is not
tail_grad_growth: the gradient norm rises near the end with a slope of about -1/2 against the learning rate and the
loss still falls; benign.

output_logit_divergence: the log-partition drifts with the head.

lr_decay_too_slow: gradient and activation norms drift, weight norms do not.

How to confirm
List the parameter groups with their decay and compare with the intent. Compare group norms across three checkpoints.
Replay with the group frozen or with its decay changed (R14).

Fix
No decay on embeddings, norms and biases; 0.1 elsewhere (0.01 to 0.1 is the usual range). Against growth of the head:
z-loss, which stopped one published late divergence, though others saw no gain from it at 1B.

References
SmolLM3 training playbook (no decay on embeddings). Marin 8B report (late divergence at low learning rate stopped by
z-loss). Reported: OLMo 2, 2025, arXiv 2501.00656.
""",
    ),
    Unseen(
        id="optimizer_not_stepping",
        title="The optimizer does not move the weights",
        family="optimization",
        part=Part.TRIGGER,
        needs=(Role.UW_RATIO, Role.PARAM_NORM, Role.GRAD_NORM, "two checkpoints at least ten steps apart"),
        replay="compare two checkpoints; take one step and see what changed (R11)",
        manual="""
Gradients are computed, but a group of weights never changes.

What happened
The optimizer was built before the model was wrapped, holds parameters that are no longer the model's, or misses a
group; or requires_grad is off. Backward works, the logged gradient norm looks alive, and the weights stay where they
are.

How it shows in logs
A plateau from the start or from a resume on, with a gradient norm above zero. The parameter norm is constant to the
last digit and the update-to-weight ratio is 0. Two checkpoints ten or more steps apart hold bit-equal tensors of a
trainable group. Scalars alone cannot show a frozen group when other groups still train.

What would contradict it
The hashes of every trainable tensor differ between two checkpoints.

Looks like, but is not
lr_too_low_or_zero: the logged learning rate is tiny.

bf16_update_stall: most weights, not all, are unchanged and the updates are non-zero.

adam_eps_too_large: weights move, but far too little.

How to confirm
Compare two checkpoints tensor by tensor (forensics diff), or audit the state (R11): take one step and look at which
tensors changed.

Fix
Build the optimizer after FSDP or DDP wrapping, check requires_grad and that every trainable parameter is in exactly
one group, and assert once at start that a step changes every group.

References
TrainCheck, OSDI 2025, arXiv 2506.14813, cases 2 to 4. PyTorch forum thread 84911. accelerate issue 2665.
""",
    ),
)
