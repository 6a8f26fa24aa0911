"""The one table of evidence weights and priors, in log-odds. Everything the ranking believes before it looks is here.

Weights follow the catalogue's ranking rules: a required test that is true counts two, a supporting one counts one, a
contradiction minus two, an excluding fact six. Replay verdicts outweigh every log signature.
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.model import EventKind

REQUIRED = 2.0
"""A test the cause cannot do without."""

STRONG = 3.5
"""The cause itself is visible in the log: the jump, the burst, the repeated batch."""

CHECKPOINT = 5.0
"""The cause itself is in a checkpoint: the rotten number, the count that began again. As much as a replay (catalogue: 5)."""

SUPPORT = 1.0
"""A test that fits the cause and few others."""

HINT = 0.5
"""A test that fits the cause and many others."""

AGAINST = -2.0
"""The cause predicts something that is logged and absent."""

DOUBT = -1.0
"""The cause usually looks otherwise."""

UNKNOWN_CAUSE = 1.0
"""Log-odds of "none of the causes that were examined": what every hypothesis has to beat."""

BASE = -1.5
"""Prior of any cause before its first evidence."""

FIRST = 0.5
"""Prior of the causes to look at first for a kind of event (the catalogue's symptom index)."""

SHARPNESS = 1.4
"""Factor on all log-odds before they become scores: weights say what counts more, this says how much all of it is worth."""

UNDETERMINED_TOP = 0.4
"""A best score below this is no answer."""

UNDETERMINED_MARGIN = 0.1
"""Two best scores closer than this are no answer either."""

SHOWN = 0.02
"""Hypotheses below this score are listed as rejected, with the reason."""

LOOK_FIRST: Mapping[EventKind, tuple[str, ...]] = {
    EventKind.SPIKE: ("bad_batch_outlier", "batch_state_interaction", "adam_v_stale", "sdc_transient"),
    EventKind.SLOW_SPIKE: ("adam_v_stale", "momentum_contamination", "lr_peak_instability", "lr_rewarm_or_jump", "mixture_shift"),
    EventKind.LEVEL_SHIFT: ("attention_logit_growth", "batch_state_interaction", "mixture_shift"),
    EventKind.DRIFT: ("lr_too_high", "lr_decay_too_slow", "attention_logit_growth"),
    EventKind.DIVERGENCE: ("lr_too_high", "attention_logit_growth"),
    EventKind.NON_FINITE: ("nan_in_input", "loss_mask_error", "numeric_domain_error"),
    EventKind.OSCILLATION: ("lr_too_high", "sharpness_edge", "batch_noise_small"),
    EventKind.NOISE_CHANGE: ("batch_size_change_unscaled", "loss_mask_error"),
    EventKind.GRAD_NORM_SURGE: ("sdc_transient", "grad_clip_missing", "gradient_explosion_depth"),
    EventKind.RESTART: ("metric_artifact", "data_repeat_after_resume"),
}


PRIOR: Mapping[str, float] = {}
"""What is added for causes that are rarer or commoner than others, whatever the event."""


def prior(cause: str, kind: EventKind) -> float:
    """Log-odds of a cause for an event of this kind before any evidence."""
    return BASE + PRIOR.get(cause, 0.0) + (FIRST if cause in LOOK_FIRST.get(kind, ()) else 0.0)
