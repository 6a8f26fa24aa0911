"""Every rule on runs in which every role is logged and everything is odd: no rule may raise, and evidence must be finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cause_events import event

from forensics.causes.catalogue import RULES
from forensics.correlate.view import View
from forensics.detectors import Incident
from forensics.model import EventKind, FloatArray, Run, Signal, SourceInfo, Span
from forensics.primitives.curves import Curves
from forensics.vocabulary import Role, assign_roles

NAMES = (
    *("loss", "val_loss", "eval_accuracy", "accuracy", "lr", "grad_norm", "clip_value", "loss_scale", "skipped", "update_rms", "update_to_weight"),
    *("param_norm", "param_norm/embed", "param_norm/lm_head", "grad/embed", "grad/layer_0", "grad/layer_7", "attn_logit_max", "logz"),
    *("act_max/down_proj", "act_rms/layer_0", "act_rms/layer_5", "act_rms/layer_9", "batch_id", "seq_len", "valid_tokens", "batch_size"),
    *("step_time", "data_time", "tokens_per_second", "epoch", "gpu_util", "system.gpu.0.memoryAllocated", "system.gpu.0.smClock"),
    *("system.gpu.0.uncorrectedMemoryErrors", "loss_rank0", "loss_rank1", "rank0_time", "rank1_time", "rank2_time", "kl", "entropy", "clipfrac"),
    *("reward", "reward_std", "frac_reward_zero_std", "rollout_train_mismatch", "explained_variance", "value_loss", "response_length", "truncated"),
    *("expert_0_load", "expert_1_load", "aux_loss", "router_logits_max", "loss_D", "loss_G", "loss_web", "loss_code", "dead_units", "grads_zero"),
)

CONFIG: dict[str, object] = {
    "adam_epsilon": 1e-8,
    "n_params": 1e6,
    "max_grad_norm": 1.0,
    "max_steps": 400,
    "warmup_steps": 20,
    "vocab_size": 100,
    "hidden_size": 64,
    "init_std": 0.5,
    "dtype": "fp16",
    "use_fp8": True,
    "max_completion_length": 10,
    "world_size": 4,
    "weight_decay": 0,
}

SHAPES = ("constant", "zero", "negative", "wild", "huge", "mostly_nan", "short", "one", "tiny_steps")


def odd(shape: str) -> Run:
    points = {"short": 12, "one": 1}.get(shape, 200)
    rng = np.random.default_rng(0)
    steps = np.arange(points, dtype=np.int64)
    signals = []
    for name in NAMES:
        values: FloatArray = rng.normal(size=points)
        if shape in {"constant", "zero"}:
            values = np.full(points, 3.0 if shape == "constant" else 0.0)
        elif shape == "negative":
            values = -1 - np.abs(values)
        elif shape == "huge":
            values = np.exp(np.clip(200 * values, -600, 600))
        elif shape == "mostly_nan":
            values = np.where(rng.random(points) < 0.05, values, np.nan)
        elif shape == "tiny_steps":
            values = np.abs(values) * 1e-320
        signals.append(Signal(name, steps, values, wall_times=1e9 + steps.astype(np.float64), spans=(Span(0, 0, points),)))
    return Run("run", "run", (SourceInfo("log.csv", "csv", points * len(NAMES)),), assign_roles(signals), (), CONFIG)


def test_every_role_that_rules_ask_for_is_logged() -> None:
    logged = {s.role for s in odd("short").signals}
    asked = {need.value for rule in RULES for need in rule.INFO.needs if isinstance(need, Role)}
    assert asked - logged <= {"wall_time"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("error")
def test_no_rule_raises(shape: str) -> None:
    run = odd(shape)
    curves = Curves(run)
    for kind in EventKind:
        for step in {0, 5, len(run.signals[0]) // 2, int(run.signals[0].steps[-1])}:
            main = event(run, kind, step, text="odd", height=0.01, baseline=1.0, peak=1.01, end_step=step + 30)
            with_it = (EventKind.LOSS_SCALE_COLLAPSE, EventKind.THROUGHPUT_CHANGE)
            incident = Incident(main, (main, *(event(run, k, step, text="odd", peak=1.0) for k in with_it)))
            for rule in RULES:
                found = rule.examine(View(run, curves, incident, (incident,)))
                for evidence in (*found.supporting, *found.against):
                    assert math.isfinite(evidence.weight), rule.INFO.id
                    assert evidence.text, rule.INFO.id
                assert all(e.weight > 0 for e in found.supporting), rule.INFO.id
                assert all(e.weight < 0 for e in found.against), rule.INFO.id
