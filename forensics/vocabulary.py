"""Which logged name means what: canonical roles, their units, and the names the field uses for them.

A name is normalised (lower case, words separated by one underscore) and matched against the table below, first match
wins. Original names are always kept and shown; ``--metric ROLE=NAME`` overrides the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from forensics.model import Signal


class Role(StrEnum):
    """What a signal measures."""

    LOSS = "loss"
    LOSS_BY_SOURCE = "loss_by_source"
    VAL_LOSS = "val_loss"
    LR = "lr"
    GRAD_NORM = "grad_norm"
    GRAD_NORM_GROUP = "grad_norm_group"
    CLIP = "clip"
    LOSS_SCALE = "loss_scale"
    SKIPPED = "skipped"
    UPDATE_RMS = "update_rms"
    UW_RATIO = "uw_ratio"
    PARAM_NORM = "param_norm"
    PARAM_NORM_GROUP = "param_norm_group"
    ATTN_LOGIT_MAX = "attn_logit_max"
    ATTN_ENTROPY = "attn_entropy"
    LOGZ = "logz"
    ACT_MAX = "act_max"
    ACT_RMS = "act_rms"
    BATCH_ID = "batch_id"
    SAMPLES = "samples"
    TOKENS = "tokens"
    BATCH_SIZE = "bs"
    SEQ_LEN = "seq_len"
    TOK_VALID = "tok_valid"
    STEP_TIME = "step_time"
    THROUGHPUT = "tput"
    EPOCH = "epoch"
    STEP = "step"
    WALL_TIME = "wall_time"
    ACCURACY = "accuracy"
    VAL_METRIC = "val_metric"
    GPU = "gpu"
    RANK_LOSS = "rank_loss"
    KL = "kl"
    ENTROPY = "entropy"
    CLIP_FRACTION = "clipfrac_ppo"
    REWARD = "reward"
    VALUE_LOSS = "value_loss"
    RESPONSE_LENGTH = "resp_len"
    EXPERT_LOAD = "expert_load"
    AUX_LOSS = "aux_loss"
    ROUTER_LOGIT_MAX = "router_logit_max"


UNITS: Mapping[Role, str] = {
    Role.LOSS: "nats (as logged)",
    Role.VAL_LOSS: "nats (as logged)",
    Role.LR: "per step",
    Role.GRAD_NORM: "L2 norm (as logged)",
    Role.LOSS_SCALE: "factor",
    Role.STEP_TIME: "seconds (as logged)",
    Role.THROUGHPUT: "tokens or samples per second (as logged)",
}

POSITIVE = frozenset({Role.LR, Role.GRAD_NORM, Role.LOSS_SCALE, Role.UPDATE_RMS, Role.PARAM_NORM, Role.STEP_TIME, Role.THROUGHPUT, Role.BATCH_SIZE})
"""Roles whose values are compared as logarithms: factors matter, not differences."""

HIGHER_IS_BETTER = frozenset({Role.ACCURACY, Role.REWARD})
"""Roles where a fall, not a rise, is the bad direction."""


@dataclass(frozen=True, slots=True)
class _Alias:
    role: Role | None
    pattern: re.Pattern[str]
    preference: int


def _aliases(rows: Iterable[tuple[Role | None, str, int]]) -> tuple[_Alias, ...]:
    return tuple(_Alias(role, re.compile(pattern), preference) for role, pattern, preference in rows)


_HELD_OUT = r"(val|valid|validation|eval|evaluation|test|tel|dev|heldout|held_out|holdout)"
_LOSS = r"(loss|cross_entropy|cross_entropy_loss|ce_loss|nll|nll_loss|ce|perplexity|ppl|mse|mae|objective|elbo|bpb|bpc)"
_TRAIN = r"(train|training|trainer|tr|metrics|losses)"

_TABLE = _aliases(
    (
        # End-of-run summaries and statistics of other signals are not curves of their role.
        (None, r"^(train|eval|test|predict)_(runtime|samples_per_second|steps_per_second)$", 0),
        (None, r"^((train|epoch|total)_(time|wall)|(train_)?step_avg(_ms)?)$", 0),
        (None, r"^.*_(std|var|min|median|p\d+|ema|avg_window|zscore|z_score|ratio_to_.*)$", 0),
        (None, r"^(total_flos|train_total_flos|max_steps|num_train_epochs|(.*_)?best_.*|remaining_time|eta.*|.*_eta)$", 0),
        # Steps, time and position in the data.
        (Role.STEP, r"^((train|trainer|training|metrics|counters|time|progress)_)?(global_step|gobal_step|update_step|optimizer_step|train_step|iteration|iter|iters|step|steps|num_updates|update)$", 50),
        (Role.WALL_TIME, r"^(timestamp|wall_time|walltime|time|runtime|relative_time|elapsed|datetime|date)$", 50),
        (Role.EPOCH, r"^((train|trainer|training|current|global|num|counters|time|progress)_)*epochs?$", 60),
        (Role.BATCH_ID, r"^(.*_)?(batch|data|shard|sample)_?(id|ids|idx|index|hash|num|number)$", 90),
        (Role.BATCH_ID, r"^(train_)?batch$", 60),
        (Role.SAMPLES, r"^(.*_)?(consumed|seen|processed|num|total|n)_(train_)?(samples|examples|sequences)(_seen)?$", 80),
        (Role.SAMPLES, r"^(samples|examples)(_seen)?$", 60),
        (Role.TOKENS, r"^(.*_)?(consumed|seen|processed|num_input|total|n)_(train_)?tokens(_seen)?$", 80),
        (Role.TOKENS, r"^(num_|progress_|throughput_total_)?tokens(_seen)?$", 50),
        (Role.TOK_VALID, r"^(.*_)?((num_)?(valid|unmasked|target|label|loss)_tokens|num_items_in_batch|tok_valid)$", 80),
        (Role.BATCH_SIZE, r"^(.*_)?(global_|train_|total_|effective_)?batch_?size$", 90),
        (Role.BATCH_SIZE, r"^(bs|gbs|bsz)$", 80),
        (Role.SEQ_LEN, r"^(.*_)?(seq|sequence|context)_?(len|length)(_max|_mean)?$", 80),
        # Speed.
        (Role.THROUGHPUT, r"^(.*_)?(tokens?|samples?|examples?|seqs?|sequences?|steps?|it|its|iterations?|items?|images?|words?|frames?|batches)_?(per|p|/)_?(s|sec|secs|second|seconds)(_per_(gpu|device))?$", 80),
        (Role.THROUGHPUT, r"^(.*_)?(throughput|tput|tps|tok_s|it_s|its|fps|tflops|tflo_ps|tflop_s|tflops_per_gpu|wps|ups)(_tokens|_per_gpu|_samples)?$", 60),
        (Role.THROUGHPUT, r"^(.*_)?(mfu|throughput_.*)$", 40),
        (Role.STEP_TIME, r"^(.*_)?(step|iter|iteration|batch|update)_?time(_ms|_s|_sec|_seconds)?$", 80),
        (Role.STEP_TIME, r"^(.*_)?(elapsed_time_per_iteration|elapsed_time_per_iteration_ms|seconds?_per_(step|iter|iteration|it|batch)|elapsed_time_per_iteration_s|(train_)?step_timing_in_s|ms_batch|time_ms|sec_step|s_per_it|s_it|ms_per_step|dt|dt_ms|batch_duration)$", 75),
        # Precision.
        (Role.LOSS_SCALE, r"^(.*_)?((loss|grad|amp|fp16|scaler|gradscaler|loss_scaler)_?(scale|scaler)(_value|_factor)?|amp_scale|scaler_scale|cur_scale)$", 90),
        (Role.SKIPPED, r"^(.*_)?((number_of_)?(skipped|nan)_(iterations|steps|batches|updates)|found_inf|overflows?|num_overflows|skipped)$", 80),
        # Reinforcement learning and mixtures of experts, before the general loss names.
        (Role.VALUE_LOSS, r"^(.*_)?(value|critic|vf|v|q|qf\d?)_?(function_)?loss$", 80),
        (Role.KL, r"^(.*_)?(kl|approx_kl|kl_div|kl_divergence|mean_kl|kl_mean|ref_kl|policy_kl)$", 80),
        (Role.ATTN_ENTROPY, r"^(.*_)?(attn|attention)_?(.*_)?entropy(_.*)?$", 80),
        (Role.ENTROPY, r"^(?!.*cross_entropy)(.*_)?(entropy|policy_entropy|entropy_loss|entropy_mean)$", 60),
        (Role.CLIP_FRACTION, r"^(.*_)?(clip_?frac|clip_?fraction|clip_?ratio|pg_clipfrac)(_.*)?$", 80),
        (Role.REWARD, r"^(.*_)?(reward|rewards|return|returns|ep_rew_mean|episode_reward|episodic_return|mean_reward|reward_mean|rewards_mean|score_mean)$", 70),
        (Role.RESPONSE_LENGTH, r"^(.*_)?(response|completion|generation|episode|ep)_?(len|length|lengths)(_mean|_avg)?$", 70),
        (Role.ROUTER_LOGIT_MAX, r"^(.*_)?router_(.*_)?logits?(_.*)?$", 70),
        (Role.AUX_LOSS, r"^(.*_)?(aux|auxiliary|load_balancing|load_balance|balance|moe|router)_?(z_)?loss$", 80),
        (Role.EXPERT_LOAD, r"^(.*_)?(expert|experts)_?(.*_)?(load|count|counts|usage|utilization|utilisation)(_.*)?$", 70),
        # Numerics of the model.
        (Role.LOGZ, r"^(.*_)?(z_loss|log_?z|zloss|logsumexp|max_z)$", 80),
        (Role.ATTN_LOGIT_MAX, r"^(.*_)?(attn|attention|qk)_?(.*_)?(logits?|scores?)(_max)?(_.*)?$", 80),
        (Role.ATTN_LOGIT_MAX, r"^(.*_)?(max_(attn_|attention_|qk_)?logits?|qk_max|max_qk|logit_max|max_logits?)$", 75),
        (Role.UW_RATIO, r"^(.*_)?(update_to_weight(_ratio)?|upd_param_ratio|update_ratio|update_param_ratio|uw_ratio|trust_ratio)(_.*)?$", 80),
        (Role.UPDATE_RMS, r"^(.*_)?(update_?(rms|norm|size)|updates_norm|rms_t|rms_update|total_update_norm)(_.*)?$", 80),
        (Role.ACT_MAX, r"^(.*_)?(act|activation|activations|hidden|residual)_?(.*_)?(max|absmax|amax)(_.*)?$", 70),
        (Role.ACT_RMS, r"^(.*_)?(act|activation|activations|hidden|residual)_?(.*_)?(rms|norm|std)(_.*)?$", 70),
        (Role.RANK_LOSS, r"^(.*_)?(loss_rank_?\d+|rank_?\d+_loss)$", 70),
        # Gradients.
        (Role.CLIP, r"^(.*_)?(max_grad_norm|clip_grad_norm_value|clip_threshold|gradient_clip_val|clip_value|clip_norm)$", 80),
        (None, r"^(.*_)?grad(ient)?_norm_?(sq|square|squared)$", 0),
        (None, r"^(.*_)?(clip|clipped|clipping)_.*(rate|frac|fraction|ratio|coef|coefficient).*$", 0),
        (Role.GRAD_NORM, r"^(.*_)?(total_|global_)(grad|gradient)s?_?(l2_|2_)?norm(_total|_global|_pre_clip|_preclip|_before_clip|_unclipped)?$", 95),
        (Role.GRAD_NORM, r"^(.*_)?(grad|gradient)s?_?(2_0_|l2_|2_)?norm(_(total|global|pre_clip|preclip|before_clip|unclipped|l2|all))?$", 90),
        (Role.GRAD_NORM, r"^(.*_)?(gnorm|g_norm|norm_grad|grad_l2|grad_rms|l2_grad|gradnorm)$", 80),
        (Role.GRAD_NORM, r"^(l2_norm_grad_global|total_norm)$", 70),
        (Role.GRAD_NORM, r"^norm$", 40),
        (Role.GRAD_NORM, r"^(.*_)?(grad|gradient)s?_?(2_0_|l2_)?norm_.*(clip|clipped)$", 45),
        (Role.GRAD_NORM_GROUP, r"^(.*_)?(grad|gradient|gradients|grads)_.+$", 30),
        (Role.PARAM_NORM, r"^(.*_)?(total_|global_)?(param|params|parameter|parameters|weight|weights)_?(l2_)?norm(_total)?$", 80),
        (Role.PARAM_NORM_GROUP, r"^(.*_)?(param|params|parameter|weight|weights)_?norm_.*$", 40),
        # Learning rate.
        (Role.LR, r"^(.*_)?(lr|learning_rate|learningrate)$", 90),
        (Role.LR, r"^(.*_)?(lr|learning_rate|learningrate)_?(group|pg|param_group|adam_w|adam|sgd|muon|lion|adafactor|optimizer|opt|abs|0|\d+)?_?.*$", 70),
        # Held-out losses and metrics, before training losses.
        (Role.VAL_LOSS, rf"^(.*_)?{_HELD_OUT}_?(.*_)?{_LOSS}(_.*)?$", 80),
        (Role.VAL_LOSS, rf"^(.*_)?{_LOSS}_{_HELD_OUT}$", 80),
        (Role.VAL_LOSS, r"^tel$", 60),
        (Role.VAL_METRIC, rf"^(.*_)?{_HELD_OUT}_.*$", 30),
        # Hardware.
        (Role.GPU, r"^(system_|gpu_|.*_gpu_)(.*)$", 20),
        # Training losses, best names first.
        (Role.LOSS, rf"^({_TRAIN}_)?(lm_)?(total_)?loss(_step|_per_step|_iter|_batch|_inst|_local)?$", 100),
        (Role.LOSS, rf"^({_TRAIN}_)?(language_cross_entropy|cross_entropy|cross_entropy_loss|ce_loss|nll_loss|nll|lm_loss|total_loss|mlm_loss)(_step)?$", 90),
        (Role.LOSS, rf"^loss_({_TRAIN}|total|lm|step|all)$", 85),
        (Role.LOSS, r"^loss_(avg|mean)$", 55),
        (Role.LOSS, r"^(trl|tloss|trainloss)$", 80),
        (Role.LOSS, rf"^({_TRAIN}_)?(avg|average|mean|running|smoothed|reduced|global|batch|step|policy|actor|pg|gen|generator|mse|mae|perplexity|ppl|objective|elbo|bpb|bpc|reconstruction|recon)_?(loss)?$", 60),
        (Role.LOSS, r"^(.*_)?loss_epoch$", 30),
        (Role.LOSS_BY_SOURCE, r"^(.*_)?loss(_.*)?$", 50),
        (Role.ACCURACY, r"^(.*_)?(acc|accuracy|top_?1|top_?5|f1|auc|auroc|bleu|rouge.*|iou|miou|map)(_.*)?$", 50),
    )
)

_STEP_COLUMNS = (
    "global_step",
    "train_global_step",
    "trainer_global_step",
    "gobal_step",
    "step",
    "steps",
    "iteration",
    "iterations",
    "iter",
    "it",
    "train_step",
    "update_step",
    "optimizer_step",
    "num_updates",
    "update",
    "n_iter",
    "batch_num",
    "epoch",
)
"""Names of a step axis in tables, best first: optimizer steps before log calls before epochs."""


@lru_cache(maxsize=65536)
def normalise(name: str) -> str:
    """``optim/learningRate-group0`` -> ``optim_learning_rate_group0``."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", spaced)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def classify(name: str) -> tuple[Role | None, int]:
    """Role of a logged name and how good a name it is for that role (0..100)."""
    plain = normalise(name)
    for alias in _TABLE:
        if alias.pattern.match(plain):
            return alias.role, alias.preference
    return None, 0


def step_column(names: Iterable[str]) -> str | None:
    """The column of a table that is its step axis, or None."""
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(normalise(name), name)
    return next((by_plain[c] for c in _STEP_COLUMNS if c in by_plain), None)


def assign_roles(signals: Iterable[Signal], overrides: Mapping[str, str] | None = None) -> tuple[Signal, ...]:
    """Give every signal its role and its rank within the role (0 = primary).

    ``overrides`` maps role -> logged name; the named signal becomes the primary of that role. Among the rest the better
    name wins, then the one with more points, then the order of appearance. A run without a plain loss name takes its best
    ``*_loss``; the other losses stay ``loss_by_source``.
    """
    forced = {name: role for role, name in (overrides or {}).items()}
    ranked: dict[str, list[tuple[int, int, int, Signal]]] = {}
    rest: list[Signal] = []
    for order, signal in enumerate(signals):
        role, preference = classify(signal.name)
        if signal.name in forced:
            ranked.setdefault(forced[signal.name], []).append((-1000, 0, order, signal))
        elif role is None:
            rest.append(signal)
        else:
            ranked.setdefault(role.value, []).append((-preference, -len(signal), order, signal))
    sources = ranked.get(Role.LOSS_BY_SOURCE.value, [])
    if Role.LOSS.value not in ranked and sources and not ({Role.KL.value, Role.REWARD.value} & ranked.keys()):
        best = min(sources, key=lambda row: row[:3])
        sources.remove(best)
        ranked[Role.LOSS.value] = [best]
    out = list(rest)
    for name, rows in ranked.items():
        for rank, row in enumerate(sorted(rows, key=lambda r: r[:3])):
            out.append(replace(row[3], role=name, rank=rank))
    position = {s.name: i for i, s in enumerate(signals)} if isinstance(signals, (tuple, list)) else {}
    return tuple(sorted(out, key=lambda s: position.get(s.name, 0)))
