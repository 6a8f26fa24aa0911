"""The explicit list of causes that have a rule. A module that is not listed here does not exist for the tool."""

from __future__ import annotations

from types import ModuleType

from forensics.causes.architecture import attention_logit_growth, gradient_explosion_depth
from forensics.causes.data import (
    bad_batch_outlier,
    batch_state_interaction,
    data_repeat_after_resume,
    epoch_boundary_step,
    loss_mask_error,
    mixture_shift,
    nan_in_input,
    overfitting,
)
from forensics.causes.hardware import sdc_transient
from forensics.causes.optimization import (
    adam_v_stale,
    batch_noise_small,
    batch_size_change_unscaled,
    grad_clip_chronic,
    grad_clip_missing,
    lr_decay_too_slow,
    lr_peak_instability,
    lr_rewarm_or_jump,
    lr_schedule_miscounted,
    lr_too_high,
    lr_too_low_or_zero,
    lr_warmup_missing,
    momentum_contamination,
    sharpness_edge,
    tail_grad_growth,
)
from forensics.causes.precision import (
    bf16_loss_quantisation,
    fp16_activation_overflow,
    fp16_grad_overflow,
    fp16_underflow,
    loss_scale_collapse,
    numeric_domain_error,
    scale_calibration_skips,
    scale_growth_trigger,
)
from forensics.causes.resume import (
    grad_accum_normalisation,
    grad_reduction_scale,
    metric_artifact,
    resume_data_or_rng_lost,
    resume_optimizer_lost,
    resume_scaler_reset,
    resume_scheduler_lost,
    resume_weights_wrong,
)

RULES: tuple[ModuleType, ...] = (
    scale_calibration_skips,
    metric_artifact,
    epoch_boundary_step,
    lr_rewarm_or_jump,
    lr_too_high,
    lr_warmup_missing,
    lr_peak_instability,
    lr_too_low_or_zero,
    lr_decay_too_slow,
    sharpness_edge,
    batch_size_change_unscaled,
    batch_noise_small,
    grad_clip_missing,
    adam_v_stale,
    momentum_contamination,
    bad_batch_outlier,
    batch_state_interaction,
    nan_in_input,
    loss_mask_error,
    mixture_shift,
    data_repeat_after_resume,
    fp16_grad_overflow,
    loss_scale_collapse,
    numeric_domain_error,
    gradient_explosion_depth,
    attention_logit_growth,
    resume_optimizer_lost,
    resume_scheduler_lost,
    resume_data_or_rng_lost,
    resume_weights_wrong,
    grad_accum_normalisation,
    grad_reduction_scale,
    sdc_transient,
    scale_growth_trigger,
    resume_scaler_reset,
    fp16_underflow,
    fp16_activation_overflow,
    bf16_loss_quantisation,
    overfitting,
    lr_schedule_miscounted,
    grad_clip_chronic,
    tail_grad_growth,
)
"""Every cause with a rule of its own; look-alikes first, because they are tested first."""
