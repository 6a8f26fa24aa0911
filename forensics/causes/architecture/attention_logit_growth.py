"""Attention logits grow until the softmax saturates.

What happened
-------------
The norms of query and key weights grow, and with them the scores before the softmax. A saturated softmax attends to
one token, its gradient is erratic, and a small change of the weights changes everything. Longer sequences are not the
driver; growth of the weights is.

How it shows in logs
--------------------
The largest logged attention logit grows by 1.5 times or more and passes 50 (watch) or 100 (alarm); healthy runs stay
below 30. Published failures saw 1e3 to 1e4 and more. Entropy of single heads falls under 0.1 nat, update spikes lead
the loss, and clipping, skipping or another optimizer do not cure it. Fused kernels do not expose the logits: where
they are not logged, this tool can only ask for them.

What would contradict it
------------------------
Logits of at most 30 up to the onset exclude it. A clip of gradients or a smaller learning rate that cures the run for
good speaks against it.

Looks like, but is not
----------------------
adam_v_stale: update spikes lead as well, and beta2 or update clipping cures it.

attn_kernel_rounding_bias: goes away in float32.

output_logit_divergence: the output head, not attention.

residual_growth: activations drift first.

fp16_activation_overflow: where this ends in float16.

How to confirm
--------------
A replay measures the largest logit per head. QK-norm or a softcap switched on from the same checkpoint removes the
event (R14); changes of the optimizer do not (R8).

Fix
---
QK-norm; it can be added in mid-run with a re-warm of about 1,000 steps and a small, one-time loss penalty. QK-clip at
100 rescales the weights and leaves the attention kernel alone. A softcap of 50 works, but early fused kernels do not
support it: check your version. A lower learning rate buys time. QK-norm changes how attention sharpens at long
context: test it there.

References
----------
Wortsman et al. 2023, arXiv 2309.14322 (failure zone 1e4: reported). ViT-22B 2023 (5e4: reported). Kimi K2 2025, arXiv
2507.20534 (QK-clip at 100). Marin 32B retrospective (QK-norm from step 80,000 cured it). Reported: Gemma 2 (softcap
50).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="attention_logit_growth",
    title="Nothing bounds the attention logits",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ATTN_LOGIT_MAX,),
    replay="QK-norm or a softcap removes it (R14), optimizer changes do not (R8)",
    info=(EventKind.LOGIT_GROWTH,),
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
