"""Causes of the family resume that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part

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
)
