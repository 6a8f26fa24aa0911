"""Causes of the family rl (reinforcement learning) that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="rl_kl_blowup",
        title="The policy leaves its reference too fast",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.KL, Role.CLIP_FRACTION, "largest importance ratio", Role.REWARD, Role.LR),
        replay="replay with the learning rate divided by 2 to 5 (R6); with a larger KL coefficient",
        manual="""
KL to the reference or to the old policy jumps, and the reward falls after it.

What happened
Updates are too large for the clipped objective to hold: many samples leave the clip range, the ratio explodes, and
the policy moves to where the reward model means nothing.

How it shows in logs
KL drifts up, or jumps to 5 times its median within 50 updates, before the reward falls. The clip fraction is above
0.3 and the largest ratio above 10.

What would contradict it
KL is flat.

Looks like, but is not
rl_train_infer_mismatch: the two engines disagree first.

rl_entropy_collapse: entropy falls first.

rl_value_blowup: the value loss moves first.

How to confirm
Replay the update with the learning rate divided by 2 to 5 (R6) and with a larger KL coefficient.

Fix
Lower the learning rate, stop an epoch at 1.5 times the target KL, a smaller clip range, fewer epochs per batch.

References
Practitioners' posts on GRPO monitoring. Reported: PPO notes.
""",
    ),
    Unseen(
        id="rl_entropy_collapse",
        title="Exploration died out",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.ENTROPY, Role.REWARD, "spread of rewards within a group"),
        replay="go on from the checkpoint with a higher upper clip or an entropy bonus (R14)",
        manual="""
The policy's distribution narrows until all samples are alike.

What happened
Likely tokens are reinforced and unlikely ones, clipped sooner, never recover. Samples of a prompt become equal,
advantages shrink, and learning stops.

How it shows in logs
Entropy falls below 20 % of its start (a practitioner's rule of thumb is 0.5 nat) while the reward is on a plateau.
The spread of rewards shrinks.

What would contradict it
Entropy is stable.

Looks like, but is not
rl_zero_advantage: rewards are equal at healthy entropy.

rl_reward_hacking: the reward goes on rising.

rl_kl_blowup: KL jumps first.

How to confirm
Continue from the same checkpoint with a higher upper clip or an entropy bonus (R14).

Fix
Asymmetric clip (0.2 below, 0.28 above), dynamic sampling, a loss averaged over tokens.

References
DAPO 2025, arXiv 2503.14476 (partly reported). The 0.5 nat rule is from a practitioner's post.
""",
    ),
    Unseen(
        id="rl_reward_hacking",
        title="The reward rises, the quality does not",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.REWARD, Role.VAL_METRIC, Role.RESPONSE_LENGTH),
        replay="score the stored samples with another reward model",
        manual="""
The policy found what the reward model likes and nobody else does.

What happened
Optimising a proxy far enough separates it from the goal. Length, format or a phrase buys reward.

How it shows in logs
The reward drifts up while a held-out evaluation is flat or falls. The response length drifts or saturates.

What would contradict it
The held-out evaluation follows the reward.

Looks like, but is not
rl_length_runaway: truncation and length lead.

target_leak_or_format: the supervised version of the same.

How to confirm
Score stored samples with another reward model, and read some.

Fix
An ensemble of reward models, a KL term, a penalty for length.

References
A public summarisation example (all completions at the limit of 256 tokens, reward spread 0). Reported: Gao et al.
2022 on over-optimisation.
""",
    ),
    Unseen(
        id="rl_zero_advantage",
        title="All samples of a group get the same reward",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=("spread of rewards within a group", Role.GRAD_NORM, Role.REWARD),
        replay="filter groups with equal rewards",
        manual="""
Advantages are zero, so there is nothing to learn from.

What happened
When prompts are too easy or too hard, every sample of a group is right or wrong alike, and the advantage within the
group is 0. Most of the batch contributes no gradient.

How it shows in logs
The spread of rewards is 0 in more than half of the groups, the gradient norm goes to 0, and reward and loss are flat.

What would contradict it
The spread is normal.

Looks like, but is not
rl_entropy_collapse: samples are equal because the policy is narrow.

lr_too_low_or_zero: gradients are alive.

How to confirm
Count groups with equal rewards; continue with those filtered out.

Fix
Sample until groups with a spread fill the batch (dynamic sampling); adapt the difficulty of prompts.

References
The same public summarisation example as for rl_reward_hacking.
""",
    ),
    Unseen(
        id="rl_train_infer_mismatch",
        title="Rollout engine and trainer disagree",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=("KL between rollout engine and trainer", "importance ratio in the first epoch", Role.GRAD_NORM, Role.REWARD),
        replay="recompute log-probabilities in the trainer (as R12); repeat the rollouts in float32 (R5)",
        manual="""
The engine that samples and the trainer that learns give different probabilities to the same tokens.

What happened
Other kernels, another dtype or other expert routing make the two engines disagree, most on unlikely tokens. Training
is then off-policy without knowing it; one day the gradient explodes and the reward crashes.

How it shows in logs
The KL between the two engines drifts up before a sudden surge of the gradient norm and a crash of the reward. The
importance ratio of on-policy data is not 1. The effect depends on the type of GPU.

What would contradict it
The mismatch is flat and at most 1e-3.

Looks like, but is not
rl_kl_blowup: KL to the reference moves first.

rl_value_blowup: the critic moves first.

gradient_explosion_depth: outside RL.

How to confirm
Recompute the log-probabilities of stored rollouts in the trainer and compare (as R12); repeat the rollouts in float32
(R5).

Fix
Masked or truncated importance sampling per sequence, bitwise equal kernels, replay of the routing.

References
Liu and Li 2025, "When Speed Kills Stability". arXiv 2605.14220 (the mismatch alone can collapse a run).
""",
    ),
    Unseen(
        id="rl_value_blowup",
        title="The critic diverges first",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.VALUE_LOSS, "explained variance of the critic", "spread of advantages", Role.GRAD_NORM),
        replay="freeze the policy and train the critic",
        manual="""
The value loss breaks away and takes the policy with it.

What happened
Returns on an unexpected scale, too large a learning rate or a shared body let the critic diverge. Its advantages are
noise, and the policy follows them.

How it shows in logs
The value loss stands out by a robust z of 6 or more at least one update before policy loss or KL. The explained
variance is below 0.

What would contradict it
The critic is calm.

Looks like, but is not
rl_kl_blowup: KL first.

rl_reward_hacking: nothing inside moves.

lr_too_high: policy and critic together.

How to confirm
Freeze the policy and train the critic alone from the checkpoint.

Fix
Clip the value loss, normalise rewards, warm up the critic, a larger epsilon for Adam.

References
PPO implementation notes (partly reported).
""",
    ),
    Unseen(
        id="rl_length_runaway",
        title="Responses grow to the limit",
        family="rl",
        part=Part.SUSCEPTIBILITY,
        needs=(Role.RESPONSE_LENGTH, "share of truncated responses", Role.ENTROPY),
        replay="filter overlong samples",
        manual="""
Responses hit the length limit, and their rewards become noise.

What happened
The policy learns that longer is better or cannot stop. Truncated responses are scored as failures, whatever they
contain, and the reward turns noisy.

How it shows in logs
More than 0.3 of the responses are truncated and the length drifts up before the loss or the entropy moves.

What would contradict it
The length is stable.

Looks like, but is not
rl_reward_hacking: length is one of its forms, with a rising reward.

rl_entropy_collapse: entropy falls first.

How to confirm
Leave overlong samples out of the loss and continue from the checkpoint.

Fix
A soft penalty for overlong responses, a filter for truncated ones, a loss averaged over tokens.

References
DAPO 2025, arXiv 2503.14476.
""",
    ),
)
