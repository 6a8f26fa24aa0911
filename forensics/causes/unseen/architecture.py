"""Causes of the family architecture that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="output_logit_divergence",
        title="The output logits drift",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.LOGZ, Role.PARAM_NORM_GROUP, Role.LOSS),
        replay="replay with a z-loss of 1e-4 (R14)",
        manual="""
The log-partition of the output softmax drifts away from zero until the loss breaks, often late.

What happened
Cross-entropy does not see a common shift of all logits. Their level, the log-partition, can drift for tens of
thousands of steps; the output head grows, and precision or step size fails at the end, typically at a low learning
rate.

How it shows in logs
The absolute log-partition drifts past 10, the norm of the output head grows through decay and tail, and the loss
diverges late. A sudden fall of a logged z-loss can come together with a spike.

What would contradict it
The log-partition stays near 0.

Looks like, but is not
attention_logit_growth: inside the blocks, attention logits grow.

weight_decay_misapplied: the same growth with decay missing on the head as its reason.

tail_grad_growth: only the gradient norm rises.

How to confirm
Replay from a checkpoint before the drift with a z-loss of 1e-4 (R14), and compute the log-partition of a few
checkpoints.

Fix
z-loss with 1e-4, or 1e-5 in a newer recipe; a final softcap of 30. The record of z-loss is mixed: it stopped a late
divergence of one 8B run, another group saw no gain at 1B, and in one 80B run its dips came with spikes without
showing which was first.

References
PaLM 2022 and Wortsman et al. 2023, arXiv 2309.14322. Marin 8B report. IDEFICS chronicle. OLMo 2, 2025, arXiv
2501.00656. Gemma 2 (softcap).
""",
    ),
    Unseen(
        id="init_scale_too_large",
        title="The initial weights are too large",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.GRAD_NORM, Role.ACT_RMS, "activation RMS by depth at step 0", "initial standard deviation"),
        replay="the same start with a smaller standard deviation (R14)",
        manual="""
Activations and gradients are too large from the first step, more so with depth and width.

What happened
The standard deviation of the initial weights does not shrink with width and depth as it should. Activations grow
through the blocks, gradients are huge at the start, and training never leaves a high floor or breaks away early.

How it shows in logs
Any of these: a gradient norm in the first steps 50 or more times its later median; activation RMS that grows more
than twofold every ten layers; an initial loss more than one nat above ln(vocabulary size); a loss that never gets
below a high floor (6.3 to 8 in a public 104B series).

What would contradict it
The initial loss is near ln(vocabulary size) and the depth profile is flat.

Looks like, but is not
lr_warmup_missing: a flat depth profile and a full learning rate at step 0.

tokenizer_vocab_mismatch: a high initial loss with ordinary activations.

model_shape_error: a high floor, but a normal start.

How to confirm
Measure activation RMS by depth at step 0. Start again with a smaller standard deviation (R14).

Fix
Standard deviation sqrt(2/(5d)) or sqrt(1/(3d)) for width d, and output projections divided by sqrt(2L) for L layers.
For d = 14336 that is 0.0048, where 0.02 had been far too large for 104B. At its own sizes, OLMo 2 found plain N(0,
0.02) better than scaled initialisation.

References
BigScience lessons learned and chronicles. ML engineering notes (public book). Takase et al. 2023, "Spike No More".
OLMo 2, 2025, arXiv 2501.00656.
""",
    ),
    Unseen(
        id="embedding_grad_surge",
        title="The embedding gradient surges",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.GRAD_NORM_GROUP, Role.LOSS),
        replay="replay with the embedding frozen, or its gradient shrunk (R14)",
        manual="""
The gradient of the embedding dwarfs all others a few steps before the loss breaks.

What happened
Early in training the embedding receives gradients orders of magnitude above those of other layers. A surge of it
throws off the whole model within a few steps.

How it shows in logs
The embedding makes up more than 0.9 of the global gradient norm, and its norm stands out by a robust z of 6 or more
one to ten steps before the loss rises.

What would contradict it
The embedding's share of the norm is flat.

Looks like, but is not
adam_v_stale: the second moment of the embedding is too small; both can be true.

gradient_explosion_depth: all early layers grow.

batch_state_interaction: no group stands out.

How to confirm
Replay with the embedding frozen, or with its gradient multiplied by 0.1 (R14).

Fix
Shrink the embedding gradient by a factor of 0.1, add a LayerNorm after the embedding, or scale embeddings by sqrt(d).

References
GLM-130B, ICLR 2023 (shrink of 0.1; partly reported, not re-read here). BigScience embedding norm experiments. Takase
et al. 2023, "Spike No More".
""",
    ),
    Unseen(
        id="residual_growth",
        title="Activations grow along the residual stream",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.ACT_RMS, Role.ACT_MAX, "activation RMS per block"),
        replay="replay with the residual branch scaled down (R14), or a lower learning rate (R6)",
        manual="""
Activations build up with depth or over time until something behind them fails.

What happened
Every block adds to the residual stream. Where outputs of attention and feed-forward layers grow, activations in the
last blocks drift up for thousands of steps, and a few become massive. Precision or step size gives in at last.

How it shows in logs
The activation RMS of the last block drifts up by 3 sds or more over at least 500 steps before the onset. The loss
follows later; the gradient norm may drift with it.

What would contradict it
Activation norms are flat before the onset.

Looks like, but is not
attention_logit_growth: logits drift first.

lr_decay_too_slow: norms drift and a lower learning rate calms them.

fp8_outlier: sporadic jumps of one tensor, in float8 only.

How to confirm
Replay from 1,000 steps before with the residual branch scaled down (R14) and with a lower learning rate (R6). The
order of onsets across activation RMS, logits and log-partition tells which drifted first.

Fix
Pre-norm or reordered norm, depth-scaled initialisation, a lower learning rate, a clamp on activations. QKV-norm, or
QK-norm with softcap, allowed 1.5 times the learning rate in one study.

References
OPT-175B chronicles, note at 56 %. NVIDIA 2024, arXiv 2410.16682.
""",
    ),
    Unseen(
        id="vanishing_or_dead_units",
        title="Gradients vanish or units are dead",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.GRAD_NORM_GROUP, "share of activations that are exactly zero"),
        replay="another activation or initialisation (R14)",
        manual="""
Layers do not learn because their gradients or their outputs are zero.

What happened
Saturated activations, ReLU units that never fire, or a bad initialisation shrink the gradient layer by layer. Early
layers receive nothing.

How it shows in logs
A plateau from the start. The gradient norm of early layers is below 1e-3 of that of late ones, or more than 0.7 of a
layer's activations are zero for 500 steps or more.

What would contradict it
Early and late gradient norms are of the same size.

Looks like, but is not
fp16_underflow: only in float16.

optimizer_not_stepping: gradients are fine.

lr_too_low_or_zero: all layers alike.

How to confirm
Measure gradients per layer and the share of zeros (the replay's microscope), then swap activation or initialisation
(R14).

Fix
He or Xavier initialisation, normalisation layers, leaky activations, residual connections.

References
DeepDiagnosis 2021, arXiv 2112.04036. Reported: AutoTrainer's fault classes.
""",
    ),
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
    Unseen(
        id="moe_router_collapse",
        title="The router sends everything to few experts",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.EXPERT_LOAD, Role.AUX_LOSS, "share of dropped tokens"),
        replay="replay with a larger coefficient of the balancing loss (R14)",
        manual="""
A few experts get most of the tokens and the rest stops learning.

What happened
An expert that is chosen more often learns faster and is chosen more often still. Without enough balancing pressure
the router settles on few experts; the others are dead weight.

How it shows in logs
The coefficient of variation of the expert load is above 1, or the largest share is above 4 times its fair part, for
200 steps or more; over a quarter of the experts are idle. The loss sits on a plateau and does not spike.

What would contradict it
Loads are balanced.

Looks like, but is not
moe_router_logit_blowup: router logits grow and the loss spikes.

lr_too_low_or_zero: loads are balanced.

nccl_hang: an extreme imbalance can also end in a timeout.

How to confirm
Replay with a larger balancing coefficient (R14) and watch the loads.

Fix
Auxiliary loss of 1e-2, balancing by bias, capacity factor 1.25.

References
Reported: Switch Transformer and GShard.
""",
    ),
    Unseen(
        id="moe_router_logit_blowup",
        title="The router's logits grow",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.ROUTER_LOGIT_MAX, Role.AUX_LOSS, "share of tokens that change expert between repeats"),
        replay="replay with the router in float32 and a router z-loss of 1e-3 (R14)",
        manual="""
Router logits grow until low precision flips near ties.

What happened
The router's softmax saturates as its logits grow. In 16 bit, two experts with nearly equal logits change places by
rounding alone, and gradients become erratic.

How it shows in logs
The largest router logit drifts up before the onset. In a repeat of the same step more than 10 % of the tokens change
their expert.

What would contradict it
Router logits are small.

Looks like, but is not
moe_router_collapse: unequal loads and a plateau.

attention_logit_growth: the same growth in attention.

rl_train_infer_mismatch: routing differs between two engines.

How to confirm
Repeat one step (R0) and count routing flips; replay with the router in float32 and with a router z-loss of 1e-3
(R14).

Fix
Router in float32, router z-loss 1e-3.

References
Reported: ST-MoE 2022.
""",
    ),
    Unseen(
        id="gan_imbalance",
        title="Generator and discriminator are out of balance",
        family="architecture",
        part=Part.SUSCEPTIBILITY,
        needs=("loss of the discriminator", "loss of the generator", "diversity of samples"),
        replay="replay with the discriminator's learning rate divided by 2 to 4 (R6), or a gradient penalty (R14)",
        manual="""
The discriminator wins and the generator gets no gradient, or the generator collapses to few outputs.

What happened
When the discriminator tells real from generated without error, its output saturates and the generator's gradient
vanishes. In mode collapse the generator finds a few outputs that always pass.

How it shows in logs
The discriminator's loss stays below 0.1 for 500 steps or more while the generator's drifts up; or both are flat and
the diversity of samples falls.

What would contradict it
Both losses stay in balance.

Looks like, but is not
lr_too_high: both swing with growing amplitude.

vanishing_or_dead_units: without an opponent.

How to confirm
Replay with the discriminator's learning rate divided by 2 to 4 (R6), or with a gradient penalty (R14).

Fix
Two learning rates, gradient penalty, spectral normalisation.

References
Practitioners' notes on GANs. The bounds are our own.
""",
    ),
)
