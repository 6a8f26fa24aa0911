"""Causes of the family architecture that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="norm_layer_instability",
        title="Normalisation statistics are unreliable",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.VAL_LOSS, "running statistics of BatchNorm", Role.BATCH_SIZE),
        replay="evaluate with batch statistics (R14)",
        manual="""
BatchNorm statistics of tiny batches, or stale ones, make evaluation chaotic.

What happened
BatchNorm estimates mean and variance from the batch of one device. With few samples the estimates are noise; running
statistics that were frozen, not synchronised or not restored then disagree with training.

How it shows in logs
Training is fine, evaluation jumps about. The batch per device is 4 or less, and the running variance jumps.

What would contradict it
The model has no BatchNorm.

Looks like, but is not
overfitting: the gap grows smoothly.

input_scale_mismatch: inputs differ.

train_eval_mode_error: training changes after an evaluation.

How to confirm
Evaluate a checkpoint with batch statistics instead of running ones (R14).

Fix
Synchronised BatchNorm or GroupNorm, another momentum, statistics re-estimated before evaluation.

References
Our own rule. Reported: the standard tuning playbooks.
""",
    ),
    Unseen(
        id="model_shape_error",
        title="The model is not the one that was meant",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=("parameter count", "the loss of a comparable run", Role.LOSS),
        replay="none: count the parameters",
        manual="""
A slip in the configuration built another model.

What happened
A width, depth or head count was left at another value. Training works, only worse or on a smaller model than planned.

How it shows in logs
The parameter count differs from the formula, or the loss lies far above a comparable run at equal tokens (6.3 at step
6,000 against 4.5 for a 13B in a public 104B series).

What would contradict it
The parameter count matches the formula.

Looks like, but is not
init_scale_too_large: the right model, started wrongly.

rank_seed_correlated: the right shape, but shards are copies.

lr_too_low_or_zero: a plateau with tiny steps.

How to confirm
Compute the parameter count by formula and compare it with the checkpoint (forensics inspect).

Fix
Derive dependent sizes in code (feed-forward width = 4d), assert the parameter count at start.

References
BigScience tr8-104B, experiment 6 (a 58B model had been trained instead).
""",
    ),
)
