"""Causes of the family precision that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="attn_kernel_rounding_bias",
        title="A fused attention kernel rounds with a bias",
        family="precision",
        part=Part.SUSCEPTIBILITY,
        needs=("name and version of the attention kernel", Role.PARAM_NORM_GROUP, "spectral norm of query and key weights"),
        replay="replay with attention alone in float32 on the plain kernel (R5)",
        manual="""
Biased bf16 rounding in flash attention adds up along one low-rank direction until training breaks.

What happened
When attention takes a low-rank form, rounding errors of the fused bf16 kernel have a common sign and accumulate in
the same direction of the weights. The run is calm for long and then explodes.

How it shows in logs
A long calm, then a sudden explosion at the same step in every deterministic repeat. The spectral norm of some query
or key matrix drifts up before it. Attention logits may drift too.

What would contradict it
The event is the same with attention in float32.

Looks like, but is not
attention_logit_growth: persists in float32; QK-norm cures it.

fp8_outlier: only in float8 runs, at the product inside SwiGLU.

sdc_transient: does not repeat.

How to confirm
Replay with attention alone computed by the plain kernel in float32 (R5). Calm there and only there confirms it. Use
deterministic kernels, and first measure the noise band (R0).

Fix
The corrected rescaling of the softmax proposed with the analysis, a newer kernel release, accumulation in float32, or
QK-norm.

References
Qiu and Yao 2025, arXiv 2510.04212.
""",
    ),
    Unseen(
        id="low_precision_reduce_or_norm",
        title="Reductions or norms in 16 bit",
        family="precision",
        part=Part.SUSCEPTIBILITY,
        needs=("dtype of gradient reduction, accumulation, softmax and norms", Role.GRAD_NORM),
        replay="one step with and without accumulation (R12), with only the reduction in float32 (R5)",
        manual="""
All-reduce, gradient accumulation, softmax or RMSNorm lose bits that matter.

What happened
Sums of many terms in 16 bit drop the small ones. The error grows with the number of accumulated micro-batches and of
ranks, and norms below float32 amplify it.

How it shows in logs
Loss or gradient norm depends on the accumulation count or the world size beyond the noise of a repeat. Spikes become
frequent after a change of dtype or topology.

What would contradict it
One and N accumulation steps agree within the noise band.

Looks like, but is not
grad_accum_normalisation: a plain factor, in any precision.

grad_reduction_scale: an integer factor.

fp8_outlier: in activations.

How to confirm
Compare one step with accumulation 1 and N, and with one and several ranks (R12); repeat with only the reduction in
float32 (R5).

Fix
Accumulate and reduce gradients in float32; norms and softmax in float32. The 176B BLOOM run accumulated gradients in
float32.

References
BLOOM chronicle. AdaGC 2025, arXiv 2502.11034 (RMSNorm below float32 provokes spikes).
""",
    ),
    Unseen(
        id="eps_flush_fp16",
        title="Epsilon is zero in float16",
        family="precision",
        part=Part.TRIGGER,
        needs=("dtype of the optimizer states", "epsilon in the configuration", "second moments in a checkpoint"),
        replay="replay with epsilon 1e-6 to 1e-4 and float32 states (R8)",
        manual="""
An epsilon of 1e-8 is rounded to zero in float16, and Adam divides by zero.

What happened
The smallest positive float16 number is about 6e-8. Optimizer or normalisation code that runs in float16 turns an
epsilon of 1e-8 into 0; where the second moment is also 0 the update is 0/0.

How it shows in logs
The first non-finite tensor is an update or a weight, not a loss or a gradient. The second moment holds exact zeros,
and the states are float16.

What would contradict it
The optimizer states are float32.

Looks like, but is not
numeric_domain_error: the first non-finite value is inside the model.

nan_in_input: in the batch.

fp16_activation_overflow: in the forward pass, with growth before.

How to confirm
Read dtype and zeros of the second moment from a checkpoint. Replay the step with epsilon between 1e-6 and 1e-4, and
with float32 states (R8).

Fix
Float32 optimizer states, or an epsilon of at least 1e-7.

References
Arithmetic.
""",
    ),
)
