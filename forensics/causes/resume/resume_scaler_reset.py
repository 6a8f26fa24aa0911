"""The scaler began again at its initial scale after a resume.

What happened
-------------
The scaler's state was not in the checkpoint or was not loaded. It starts at its initial scale, overflows, and halves
until it is back; those steps are skipped.

How it shows in logs
--------------------
The loss scale jumps by a factor of 4 or more at the resume and is then halved within about 20 steps. The loss moves
little or not at all.

What would contradict it
------------------------
The run is in bf16 or float32. The scale is continuous.

Looks like, but is not
----------------------
scale_calibration_skips: the same search at the start of a run.

fp16_grad_overflow: no resume before it.

resume_optimizer_lost: the loss rises after the resume.

How to confirm
--------------
Audit the checkpoint for the scaler's state (R11).

Fix
---
Save and restore the scaler with the checkpoint.

References
----------
Lightning issue 10766 (a hypothesis there). The rule is our own.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.checkpoint_evidence import CheckpointFact
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="resume_scaler_reset",
    title="The loss scale was reset at the resume",
    family="resume",
    part=Part.TRIGGER,
    needs=(Role.LOSS_SCALE,),
    replay="audit the scaler in the checkpoint (R11)",
)

RESET = 4.0
"""Factor of the jump (catalogue): a scaler by itself only doubles."""

SEARCH_POINTS = 20
"""Logged points within which the reset scale is halved again."""

BUMP = 1.5
"""A loss that rose by this factor was not hurt by a few skipped steps."""


def examine(view: View) -> Examination:
    """Looks for a loss scale that jumped up at a resume and was halved again."""
    found = Examination(view)
    scale = view.curves.get(Role.LOSS_SCALE)
    if scale is None or len(scale) < 3:
        found.missing.append("the loss scale of every step")
        return found
    at = scale.at(view.onset)
    near = range(max(1, at - SEARCH_POINTS), min(at + SEARCH_POINTS, len(scale)))
    jumps = [i for i in near if scale.values[i] >= RESET * scale.values[i - 1] > 0]
    if not jumps:
        return found.exclude("the loss scale is continuous: it did not jump by a factor of 4 or more")
    i = jumps[0]
    step, before, after = int(scale.steps[i]), float(scale.values[i - 1]), float(scale.values[i])
    if view.resume is not None:
        found.supports(weights.STRONG, f"the loss scale went from {before:g} to {after:g} at the resume", Role.LOSS_SCALE, step)
    else:
        found.supports(weights.STRONG, f"the loss scale went from {before:g} to {after:g} at once; a scaler by itself only doubles", Role.LOSS_SCALE, step)
        found.contradicts(weights.DOUBT, "no resume is visible at that step", Role.LOSS_SCALE, step)
        found.missing.append("marks of a resume: wall times, process starts")
    held, loaded = view.checkpoints.scale_in_checkpoint(), view.checkpoints.loaded
    if held is not None and loaded is not None and after >= RESET * held > 0:
        text = f"the checkpoint that was loaded holds a loss scale of {held:g}: it was not restored"
        found.shows(weights.REQUIRED, CheckpointFact(text, loaded.step, loaded.checkpoint.path, held))
    low = float(scale.values[i : i + SEARCH_POINTS].min())
    if low < after:
        found.supports(weights.SUPPORT, f"and was back at {low:g} within {SEARCH_POINTS} logged steps: those steps were skipped", Role.LOSS_SCALE, step)
    if view.loss is not None and view.rise is not None and view.loss.factor >= BUMP:
        text = f"the loss rose to {view.loss.factor:.2f} times its level; skipped steps alone do not do that"
        found.contradicts(weights.DOUBT, text, Role.LOSS, view.loss.peak_step)
    found.remedy = f"Save and restore the scaler's state with the checkpoint; it should have gone on at {before:g}."
    return found
