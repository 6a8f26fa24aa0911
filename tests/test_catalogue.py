"""The catalogue is whole: every cause is there once, every rule file is listed, every page has its headings."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import forensics.causes
from forensics.causes import manual
from forensics.causes.catalogue import RULES
from forensics.causes.interface import CauseInfo
from forensics.causes.unseen import UNSEEN, Unseen

FOLDER = Path(forensics.causes.__file__).parent

CATALOGUE = {
    "optimization": """
        lr_too_high lr_warmup_missing lr_peak_instability lr_rewarm_or_jump lr_schedule_miscounted lr_decay_too_slow
        lr_too_low_or_zero batch_size_change_unscaled batch_noise_small grad_clip_missing grad_clip_chronic adam_v_stale
        adam_correlated_updates adam_eps_too_large momentum_contamination sharpness_edge weight_decay_misapplied
        tail_grad_growth optimizer_not_stepping
    """,
    "data": """
        bad_batch_outlier batch_state_interaction nan_in_input repeated_ngram_docs degenerate_data_pocket
        data_order_correlated mixture_shift epoch_boundary_step data_repeat_after_resume long_sequence_outlier
        packing_imbalance loss_mask_error label_noise_or_shuffle target_leak_or_format tokenizer_vocab_mismatch
        input_scale_mismatch worker_rng_duplicate overfitting
    """,
    "precision": """
        fp16_grad_overflow loss_scale_collapse fp16_underflow scale_calibration_skips scale_growth_trigger
        fp16_activation_overflow bf16_update_stall bf16_loss_quantisation attn_kernel_rounding_bias fp8_outlier
        low_precision_reduce_or_norm eps_flush_fp16 numeric_domain_error
    """,
    "architecture": """
        attention_logit_growth output_logit_divergence init_scale_too_large embedding_grad_surge residual_growth
        gradient_explosion_depth vanishing_or_dead_units norm_layer_instability model_shape_error moe_router_collapse
        moe_router_logit_blowup gan_imbalance
    """,
    "resume": """
        resume_optimizer_lost resume_scheduler_lost resume_data_or_rng_lost resume_scaler_reset resume_weights_wrong
        grad_accum_normalisation grad_reduction_scale replica_desync rank_seed_correlated software_version_change
        config_edit train_eval_mode_error metric_artifact
    """,
    "hardware": """
        sdc_transient sdc_persistent ecc_or_row_remap straggler_throttle nccl_hang dataloader_starvation oom_or_mem_leak
    """,
    "rl": """
        rl_kl_blowup rl_entropy_collapse rl_reward_hacking rl_zero_advantage rl_train_infer_mismatch rl_value_blowup
        rl_length_runaway
    """,
}
"""Every id, by family. A cause that is added or renamed is added or renamed here too."""

FAMILY_OF = {cause: family for family, names in CATALOGUE.items() for cause in names.split()}

MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|work|tmp|Users|mnt|data|var|opt)/|[A-Za-z]:\\")


def rule_files() -> list[Path]:
    families = [FOLDER / family for family in CATALOGUE if (FOLDER / family).is_dir()]
    return sorted(file for folder in families for file in folder.glob("*.py") if not file.name.startswith("_"))


def name_of(rule: ModuleType) -> str:
    return str(rule.INFO.id)


def test_every_cause_is_there_exactly_once() -> None:
    assert len(FAMILY_OF) >= 89
    assert sorted([*(r.INFO.id for r in RULES), *(u.id for u in UNSEEN)]) == sorted(FAMILY_OF)


def test_every_rule_file_is_listed() -> None:
    assert sorted(Path(str(r.__file__)) for r in RULES) == rule_files()


def test_rule_folders_hold_families_only() -> None:
    folders = {p.name for p in FOLDER.iterdir() if p.is_dir() and p.name not in {"__pycache__", "unseen"}}
    assert folders <= set(CATALOGUE)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_rule_says_who_it_is(rule: ModuleType) -> None:
    info, file = rule.INFO, Path(str(rule.__file__))
    assert isinstance(info, CauseInfo)
    assert (info.id, info.family) == (file.stem, file.parent.name)
    assert FAMILY_OF[info.id] == info.family
    assert info.title
    assert info.replay
    assert callable(rule.examine)
    assert rule.examine.__doc__


@pytest.mark.parametrize("entry", UNSEEN, ids=lambda u: str(u.id))
def test_a_cause_without_a_rule_says_what_it_needs(entry: Unseen) -> None:
    assert FAMILY_OF[entry.id] == entry.family
    assert entry.title
    assert entry.replay
    assert entry.needs
    assert len(set(entry.needs)) == len(entry.needs)


@pytest.mark.parametrize("cause", FAMILY_OF)
def test_every_page_has_all_headings_in_order(cause: str) -> None:
    page = manual.page(cause)
    assert page.family == FAMILY_OF[cause]
    assert page.summary.endswith(".")
    assert "\n" not in page.summary
    assert tuple(heading for heading, _ in page.sections) == manual.HEADINGS
    assert all(len(text) >= 10 for _, text in page.sections), "a section is empty or says nothing"


@pytest.mark.parametrize("cause", FAMILY_OF)
def test_pages_refer_to_causes_that_exist(cause: str) -> None:
    text = manual.text(cause)
    assert not MACHINE_PATH.search(text)
    named = dict(manual.page(cause).sections)["Looks like, but is not"]
    for first in re.findall(r"(?:^|\n\n)([a-z0-9]+(?:_[a-z0-9]+)+)(?::| and )", named):
        assert first in FAMILY_OF
        assert first != cause
