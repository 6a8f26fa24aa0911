"""Causes of the family data that have no rule: order, length and repetition of samples."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="repeated_ngram_docs",
        title="Documents that repeat a short phrase",
        family="data",
        part=Part.TRIGGER,
        needs=(Role.GRAD_NORM, Role.BATCH_ID, "the tokens of the batches around the event"),
        replay="gradient of each sequence apart (R4); at an earlier state the batch brings part of it (R2)",
        manual="""
A sequence that repeats a few tokens many times gives one large, coherent gradient.

What happened
In highly repetitive text every position pulls the weights the same way, so the gradients of one sequence add up
instead of averaging out. The tokens are easy, so the loss may fall first and spike after the step.

How it shows in logs
The gradient norm spikes by 6 sds or more at the step whose batch holds a span with a period of 1 to 13 tokens
repeated at least 32 times. The loss of that step may even be low; the rise comes with the next steps. The same
documents bring it back in later epochs.

What would contradict it
No such span in the batches of the three steps before the onset.

Looks like, but is not
bad_batch_outlier: the loss of the batch itself is extreme.

sdc_transient: no batch explains it and a replay is calm.

adam_v_stale: the gradient was quiet for a long time before.

How to confirm
Scan the tokens of the steps T-3 to T for repeated spans. Replay with the gradient of each sequence apart (R4): one
sequence carries most of the norm. On an earlier state the batch brings back part of the surge (R2).

Fix
Drop or mask spans of period 1 to 13 with 32 or more repeats, in the data or in the loader.

References
OLMo-core instance filter (defaults: period 1 to 13, count 32). Reported: OLMo 2, 2025, arXiv 2501.00656, data
section.
""",
    ),
    Unseen(
        id="degenerate_data_pocket",
        title="A stretch of poor data",
        family="data",
        part=Part.TRIGGER,
        needs=(Role.BATCH_ID, Role.LOSS_BY_SOURCE, "source or document of every sample"),
        replay="replay the window in shuffled order: the event goes (R16); at an earlier state it is as bad (R2)",
        manual="""
A low-quality shard or one very long file fills batch after batch.

What happened
Data that was not shuffled finely enough delivers one source, one file or one broken shard for many steps in a row.
The model is well, but it is being fed something else until the pocket is over.

How it shows in logs
The loss moves to another level for exactly as many steps as the pocket is long, then returns to its old trend without
any change of the learning rate. The loss of one source moves, the others stay; the gradient norm is calm after the
first steps.

What would contradict it
The losses of all sources move together. The rise ends without any relation to positions in the data.

Looks like, but is not
mixture_shift: does not end by itself.

data_order_correlated: comes in waves over the whole run.

batch_state_interaction: the gradient rises before the loss.

label_noise_or_shuffle: the loss of part of every batch is at chance.

How to confirm
Replay the window with its samples shuffled over a longer stretch (R16): the event spreads out and disappears. On an
earlier healthy state the same batches are as bad (R2).

Fix
Shuffle at the level of sequences, not of files. Skip the range, or filter the shard again before going on.

References
SmolLM3 training playbook (third mystery: sequence shuffling). IDEFICS chronicle, 2023-05-30 (only one source's loss
rose). Megatron option to skip a range of training iterations.
""",
    ),
    Unseen(
        id="data_order_correlated",
        title="The order of the data is not random enough",
        family="data",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.VAL_LOSS, Role.LOSS_BY_SOURCE, Role.BATCH_ID),
        replay="replay the same samples, shuffled again (R16)",
        manual="""
Consecutive batches are alike, and the training loss follows their composition.

What happened
A weak permutation, a sampler that walks through sources, or sorted data give stretches of similar batches. The model
drifts towards what it sees at the moment; the training loss wanders with it while the model as a whole gets neither
better nor worse.

How it shows in logs
The training loss shifts or waves, often with a period, and the validation loss is flat through it. The share of each
domain per batch is correlated from step to step.

What would contradict it
The validation loss moves with the training loss.

Looks like, but is not
mixture_shift: one lasting change at a planned point.

train_eval_mode_error: the period equals the evaluation interval.

lr_too_high: the gradient norm is unsettled and the swing grows.

epoch_boundary_step: one step at each epoch.

How to confirm
Take the samples of the window, shuffle them, and replay (R16): the wave is gone. Compare the period with shard
length, epoch and evaluation interval.

Fix
A full shuffle per epoch, or a Feistel permutation over sample indices. In one public 32B run an affine permutation
caused a phase shift near step 190,000; the Feistel permutation removed it.

References
Marin 32B retrospective. OLMo experiment log of 2023 (a wavy loss explained by batch composition).
""",
    ),
    Unseen(
        id="long_sequence_outlier",
        title="Long sequences upset early training",
        family="data",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.SEQ_LEN, Role.GRAD_NORM, "second moments in a checkpoint"),
        replay="replay with the sequences truncated (R3)",
        manual="""
Long sequences early in training bring gradients of extreme variance.

What happened
In the first part of training, long sequences give rare, very large gradients. They push up the second moments, and
large batches with high learning rates become unstable.

How it shows in logs
During the first 10 % of steps the gradient norm, or the largest second moment, follows the mean or maximal sequence
length of the batch (Spearman correlation 0.5 or more). Events fall on batches with long sequences.

What would contradict it
A correlation below 0.2, or packed sequences of constant length.

Looks like, but is not
lr_warmup_missing: events come whatever the length.

packing_imbalance: the count of valid tokens varies, not the length.

repeated_ngram_docs: single documents, at any time of the run.

How to confirm
Replay the event with its sequences truncated to the usual length (R3): it is gone.

Fix
Warm up the sequence length along with the learning rate. Published gains: stable training at 8x the batch and 4x the
learning rate for GPT-2, 8x and 40x for a GPT-3 of 125M.

References
Li et al. 2022, arXiv 2108.06084.
""",
    ),
    Unseen(
        id="packing_imbalance",
        title="Batches hold unequal numbers of counted tokens",
        family="data",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.TOK_VALID, Role.RANK_LOSS, Role.GRAD_NORM),
        replay="the same step with the loss divided by the global token count (R12)",
        manual="""
Micro-batches with few counted tokens weigh as much as full ones.

What happened
When the loss is averaged per micro-batch and then over micro-batches or ranks, a micro-batch with few valid tokens
counts as much as a full one. Its noisy mean dominates the gradient.

How it shows in logs
The variance of loss and gradient norm follows the spread of valid tokens across micro-batches (coefficient of
variation above 0.3).

What would contradict it
The number of valid tokens is constant.

Looks like, but is not
grad_accum_normalisation: a constant factor between accumulation settings, not a matter of spread.

loss_mask_error: the count itself is wrong.

batch_noise_small: noise of the right size for the batch.

How to confirm
Compute one step with the sum of losses divided by the global count and compare its gradient with the logged way
(R12).

Fix
Normalise by the global token count of the whole step; pack so that every micro-batch holds about equally many
targets.

References
Common practice with packed sequences. The family of transformers issue 34191.
""",
    ),
    Unseen(
        id="worker_rng_duplicate",
        title="Workers or ranks share a random seed",
        family="data",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.BATCH_ID, Role.RANK_LOSS, "sample ids per rank"),
        replay="audit the seeds of ranks and workers (R11)",
        manual="""
Several workers or ranks draw the same samples or augmentations.

What happened
Loader workers or ranks start from the same seed, or from the same one every epoch. The effective batch is smaller
than it looks, and augmentations repeat.

How it shows in logs
Within one step the same sample id stands at several ranks or workers more often than chance allows. The losses of
different ranks correlate above 0.9. Noise is larger than the batch size explains; training fits faster than it
generalises.

What would contradict it
Sample ids within a step are distinct, and rank losses are independent.

Looks like, but is not
batch_noise_small: the batch is truly small.

data_repeat_after_resume: repeats across time, not across ranks.

rank_seed_correlated: the weights are alike, not the data.

How to confirm
Print sample ids of all ranks for one step; audit the seeds (R11).

Fix
Derive the seed from rank, worker and epoch.

References
Issue 19 of sparse-to-dense (worker seeds equal to the worker id, so that a resumed run repeats its data). Reported:
the duplication of NumPy seeds in loader workers.
""",
    ),
)
