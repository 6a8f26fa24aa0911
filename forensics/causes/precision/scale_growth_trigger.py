"""The scaler had just doubled its scale when the loss broke away.

What happened
-------------
Dynamic scaling doubles the loss scale after a quiet interval. When the doubling lands on a state that is close to
overflow, the next steps overflow, are skipped or are partly saturated, and the loss suffers.

How it shows in logs
--------------------
The scale doubles within 20 steps before the onset, then is halved at least twice. In a public 13B run it went from
32768 to 65536 at step 29,040; ten steps later the loss had risen from 2.77 to 7.34 while the scale fell to 8192.
Cause or coincidence was not settled there.

What would contradict it
------------------------
No doubling within 20 steps before the onset.

Looks like, but is not
----------------------
fp16_grad_overflow: halvings without a doubling before them.

loss_scale_collapse: the scale falls to its floor and stays.

lr_peak_instability: the same run was also just past its warmup.

How to confirm
--------------
Replay from the checkpoint before with a fixed, lower scale (R10). If the loss is calm the doubling was the trigger;
if not, it only came first.

Fix
---
Cap the scale at 2^15 to 2^16, or move to bf16.

References
----------
BigScience tr1-13B training logs (public).

"""

from __future__ import annotations

import math

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.patterns import Thing
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="scale_growth_trigger",
    title="The event followed a doubling of the loss scale",
    family="precision",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="replay at a fixed, lower scale (R10)",
)

NEAR_STEPS = 20
"""A doubling this many steps before the onset can have to do with it (catalogue)."""

GROWTH = (1.5, 3.0)
"""What one growth of a scaler looks like; larger jumps are resets."""

HALVINGS = 2.0
"""Halvings that follow: one alone is the scaler taking its try back."""

AFTER_POINTS = 50
"""Logged points in which they must follow."""


def examine(view: View) -> Examination:
    """Looks for a doubling of the loss scale just before the event that was taken back more than once."""
    found = Examination(view)
    scale = view.curves.get(Role.LOSS_SCALE)
    if scale is None or len(scale) < 3:
        found.missing.append("the loss scale of every step")
        return found
    reach = max(NEAR_STEPS, 2 * scale.every)
    for i in range(max(1, scale.at(int(view.anchor - reach))), min(scale.at(view.anchor + 1), len(scale))):
        before, after = float(scale.values[i - 1]), float(scale.values[i])
        low = float(scale.values[i : i + AFTER_POINTS].min())
        if low > 0 and before > 0 and GROWTH[0] <= after / before <= GROWTH[1] and math.log2(after / low) >= HALVINGS:
            step, last = int(scale.steps[i]), int(scale.steps[i - 1])
            if step - last > NEAR_STEPS and view.every <= NEAR_STEPS:
                text = f"the loss scale went from {before:g} to {after:g} somewhere between steps {last} and {step}, which may be long before the onset"
                found.supports(weights.SUPPORT, text, Role.LOSS_SCALE, step)
            else:
                text = f"the loss scale went from {before:g} to {after:g} at step {step}, just before the onset"
                found.supports(weights.REQUIRED, text, Role.LOSS_SCALE, step)
            if view.rise is not None:
                text = f"the loss rose while the scale fell by {math.log2(after / low):.0f} halvings to {low:g}"
                found.supports(weights.SUPPORT, text, Role.LOSS, view.rise.onset_step)
            again = view.pattern(Thing.SCALE)
            if again is not None:
                found.supports(weights.SUPPORT, again.text, Role.LOSS_SCALE, step)
            found.missing.append("a replay at a fixed scale: a doubling before an event is not yet its cause")
            found.remedy = f"Cap the loss scale at {before:g} (usual caps: 2^15 to 2^16), or train in bf16."
            return found
    return found.exclude(f"the loss scale was not doubled and taken back within {NEAR_STEPS} steps of the onset")
