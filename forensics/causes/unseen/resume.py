"""Causes of the family resume that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="replica_desync",
        title="Replicas drifted apart",
        family="resume",
        part=Part.SUSCEPTIBILITY,
        needs=("hashes of replicated tensors on every rank",),
        replay="compare hashes of replicated tensors across ranks (R11)",
        manual="""
Tensors that must be equal on all ranks are not, and no scalar shows it.

What happened
A missing all-reduce, a clip on one rank only or a bug in a kernel lets copies of norms, biases or routers drift
apart. Each rank trains a slightly different model.

How it shows in logs
It does not show in loss or gradient norm. In the public 176B run only 60 % of the layer-norm weights were still in
sync after about 15 days, and nobody had noticed. Only hashes of replicated tensors reveal it.

What would contradict it
Hashes of replicated tensors are equal on all ranks.

Looks like, but is not
rank_seed_correlated: shards that should differ are equal.

low_precision_reduce_or_norm: small errors in reductions that are shared by all ranks.

How to confirm
Compare hashes or bits of replicated tensors in a sharded checkpoint (R11).

Fix
Synchronise once, fix the missing reduction, and check hashes periodically.

References
BLOOM chronicle. TrainCheck, OSDI 2025, arXiv 2506.14813, case 1 (DS-1801).
""",
    ),
    Unseen(
        id="rank_seed_correlated",
        title="Parallel shards were initialised alike",
        family="resume",
        part=Part.SUSCEPTIBILITY,
        needs=("initial weights of every tensor-parallel shard", "the loss of a comparable run"),
        replay="train a small model from scratch with one rank and with several (R12)",
        manual="""
All tensor-parallel ranks used one seed, so the shards of a matrix are copies.

What happened
Each rank draws its shard of a matrix from the same random stream. The matrix has repeated blocks, and the model
behaves like a narrower one.

How it shows in logs
The loss looks fine. Evaluations lag behind a smaller model. The correlation of two shards of one matrix at
initialisation is above 0.9. Scalars of this run alone cannot show it.

What would contradict it
The shards are independent.

Looks like, but is not
model_shape_error: another parameter count.

replica_desync: copies that should be equal differ.

worker_rng_duplicate: the data are duplicated, not the weights.

How to confirm
Correlate the shards of the first checkpoint. Train a small model from scratch with one rank and with several (R12).

Fix
Add the tensor-parallel rank to the seed. The SmolLM3 run was restarted for this after about one trillion tokens.

References
SmolLM3 training playbook (fourth mystery).
""",
    ),
    Unseen(
        id="software_version_change",
        title="A library, kernel or driver changed",
        family="resume",
        part=Part.TRIGGER,
        needs=("code and library versions of every attempt", Role.ACT_RMS, Role.THROUGHPUT),
        replay="bisect versions on a fixed checkpoint and batch (R13; described, not run)",
        manual="""
A new version computes something slightly differently.

What happened
A restart brought another kernel, library or driver. Numerics, fusion or defaults differ, and the dynamics of the run
change at that boundary.

How it shows in logs
Activation RMS, gradient norm or throughput step at the boundary of two attempts whose versions differ while the
configuration does not.

What would contradict it
The versions on both sides are equal.

Looks like, but is not
config_edit: settings differ.

straggler_throttle: throughput steps without a restart.

resume_weights_wrong: the first loss after the restart is already off.

How to confirm
Repeat one step from a fixed checkpoint and batch under both versions; bisect if they differ (R13).

Fix
Pin versions; log them per attempt; change one thing per restart.

References
OPT-175B chronicles (a framework update changed the path of activation norms and gave 2 % speed).
""",
    ),
    Unseen(
        id="config_edit",
        title="A setting was changed at a restart",
        family="resume",
        part=Part.TRIGGER,
        needs=("configuration of every attempt", Role.LR, Role.CLIP),
        replay="replay with the settings reverted one by one",
        manual="""
The event begins in the attempt whose configuration differs from the one before.

What happened
A restart was used to change learning rate, clip, decay, batch, dropout or activation, on purpose or by accident. What
follows is the effect of the change.

How it shows in logs
The configurations of two attempts differ, and the event lies within the attempt after the change.

What would contradict it
The configurations are equal.

Looks like, but is not
resume_scheduler_lost and resume_optimizer_lost: state was lost while settings are equal.

software_version_change: versions differ instead.

How to confirm
Replay the attempt's first steps with the settings reverted one by one.

Fix
Write every change into the run's timeline; change one setting per restart.

References
OPT-175B, the lineage of runs 11.x and 12.x.
""",
    ),
)
