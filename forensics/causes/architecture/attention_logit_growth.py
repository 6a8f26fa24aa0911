"""Attention logits grow until the softmax saturates."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="attention_logit_growth",
    title="Attention logits grew",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ATTN_LOGIT_MAX,),
    replay="QK-norm or a softcap removes it (R14), optimizer changes do not (R8)",
)

HEALTHY = 30.0
"""Largest attention logit of healthy runs (catalogue)."""


def examine(view: View) -> Examination:
    """Looks at the logged attention logits; without them it can only ask for them."""
    found = Examination(view)
    logits = view.curves.get(Role.ATTN_LOGIT_MAX)
    if logits is None or len(logits) == 0:
        found.missing.append("the largest attention logit per layer (fused kernels hide it; a replay measures it)")
        return found
    growth = view.incident.member(EventKind.LOGIT_GROWTH)
    if growth is not None and growth.peak is not None:
        found.supports(weights.STRONG, f"{growth.text}; healthy runs stay below {HEALTHY:g}", Role.ATTN_LOGIT_MAX, growth.peak_step, growth.peak)
        if view.grad is not None or view.incident.member(EventKind.GRAD_NORM_SURGE) is not None:
            found.supports(weights.HINT, "the gradient norm is unsettled while the logits are high", Role.GRAD_NORM)
    else:
        top = float(logits.values[: logits.at(view.anchor) + 1].max(initial=0.0))
        if top < HEALTHY:
            return found.exclude(f"the attention logits were at most {top:.3g} up to the onset")
        found.supports(weights.HINT, f"the attention logits had reached {top:.3g}", Role.ATTN_LOGIT_MAX, view.anchor, top)
    found.remedy = "Add QK-norm (possible in mid-run with a re-warm of about 1000 steps), QK-clip at 100, or a softcap of 50; lower the learning rate."
    return found
