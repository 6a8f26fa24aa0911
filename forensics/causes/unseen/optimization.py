"""Causes of the family optimization that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="adam_eps_too_large",
        title="Adam's epsilon is as large as the second moment",
        family="optimization",
        part=Part.SUSCEPTIBILITY,
        needs=("second moments in a checkpoint", "epsilon in the configuration", Role.UW_RATIO, Role.LOSS),
        replay="replay with epsilon divided by 100 (R8)",
        manual="""
Epsilon is comparable to sqrt(v), so some layers hardly move.

What happened
Adam divides by sqrt(v) + epsilon. Where gradients are small, epsilon dominates the divisor and the update becomes
plain, tiny gradient descent: those layers stop learning while others go on.

How it shows in logs
In one group of layers the median of sqrt(v) is less than ten times epsilon, and its update-to-weight ratio is below
1e-5 (healthy is near 1e-3). The loss sits on a plateau that gets worse with larger width or learning rate, because
gradients per parameter shrink.

What would contradict it
The ratio of sqrt(v) to epsilon is above 100 everywhere.

Looks like, but is not
lr_too_low_or_zero: all layers stall alike.

optimizer_not_stepping: weights of the group are bit-equal, not merely slow.

bf16_update_stall: updates have the right size but are rounded away.

How to confirm
Read v from a checkpoint, compare the median of sqrt(v) with epsilon per layer, then replay a few hundred steps with
epsilon divided by 100 (R8) and watch the update-to-weight ratio of the stalled group.

Fix
Use 1e-8, down to 1e-15 when the optimizer states are float32; one published recipe went from 1e-5 to 1e-8. Watch for
spikes afterwards: another published study reports that smaller epsilon and larger beta2 provoke them.

References
Wortsman et al. 2023, arXiv 2309.14322 (gradient RMS against epsilon; partly reported, not re-read here). OLMo 2,
2025, arXiv 2501.00656. Conflicting: AdaGC 2025, arXiv 2502.11034.
""",
    ),
)
