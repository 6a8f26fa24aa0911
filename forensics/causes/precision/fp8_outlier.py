"""A rare large activation does not fit the scale of a float8 tensor.

What happened
-------------
One scale per tensor, often taken from past steps, must cover all values. Late in training, the product inside SwiGLU
aligns and produces sporadic outliers; they saturate or crush everything else.

How it shows in logs
--------------------
The largest input of the down projection jumps tenfold or more, sporadically and late (about 200 billion tokens in a
7B study), and the loss diverges in float8 only.

What would contradict it
------------------------
A bf16 twin shows the same event.

Looks like, but is not
----------------------
residual_growth: holds in any precision.

attn_kernel_rounding_bias: in bf16 attention.

low_precision_reduce_or_norm: tied to reductions, not to activations.

How to confirm
--------------
Replay the steps in bf16 (R5): calm. Replay with a smoothed SwiGLU (R14): calm in float8 too.

Fix
---
Scale by tile or block, use the current instead of the delayed maximum, keep that tensor in bf16.

References
----------
Fishman et al. 2024, arXiv 2409.12517. DeepSeek-V3 (float8 with tile-wise scales).

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.model.words import number
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="fp8_outlier",
    title="An outlier breaks float8 training",
    family="precision",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.ACT_MAX, "precision in the configuration"),
    replay="replay in bf16 (R5), or with a smoothed SwiGLU (R14)",
)

JUMP = 10.0
"""Factor of the jump of an activation (catalogue)."""

_KINDS = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DIVERGENCE, EventKind.NON_FINITE)


def examine(view: View) -> Examination:
    """Looks for a jump of the largest activation in a float8 run."""
    found = Examination(view)
    if view.event.kind not in _KINDS:
        return found
    eight = _float8(view)
    if eight is False:
        return found.exclude("the run is not in float8")
    activations = view.curves.every(Role.ACT_MAX)
    if eight is None or not activations:
        found.missing.append("the precision in the configuration, and the largest input of every down projection in float8 runs")
        return found
    moves = [m for m in (view.move_of(s) for s in activations) if m is not None and m.onset_step is not None and m.factor >= JUMP]
    near = [m for m in moves if m.onset_step is not None and m.onset_step <= view.anchor + view.every]
    if not near:
        return found.exclude("no logged activation jumped with the event")
    most = max(near, key=lambda m: m.factor)
    text = f"{most.name} jumped from {most.baseline:.3g} to {number(most.peak)} ({number(most.factor)} times) in a float8 run"
    found.supports(weights.REQUIRED, text, Role.ACT_MAX, most.onset_step, most.peak)
    if any(word in most.name.lower() for word in ("down", "w2", "fc2", "swiglu", "mlp")):
        found.supports(weights.SUPPORT, "it is the input of the down projection, where such outliers arise", Role.ACT_MAX, most.onset_step)
    found.remedy = "Scale by tile or block with the current maximum, or keep that tensor in bf16."
    return found


def _float8(view: View) -> bool | None:
    """The run is in float8, as far as its configuration says."""
    said = None
    for key, value in view.run.config.items():
        name = str(key).lower()
        if "fp8" in name or "float8" in name:
            return value not in (False, None, 0, "", "false", "none", "None", "False", "no")
        if name.rsplit(".", 1)[-1] in {"dtype", "precision", "mixed_precision", "bf16", "fp16"}:
            said = bool(said) or "fp8" in str(value).lower() or "float8" in str(value).lower() or "e4m3" in str(value).lower()
    return said
