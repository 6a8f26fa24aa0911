"""The event begins in the attempt whose configuration differs from the one before.

What happened
-------------
A restart was used to change learning rate, clip, decay, batch, dropout or activation, on purpose or by accident. What
follows is the effect of the change.

How it shows in logs
--------------------
The configurations of two attempts differ, and the event begins within 20 logged points after the restart. A setting
that causes ask for (learning rate, clip, decay, batch, beta2 ...) weighs more than one nobody knows.

What would contradict it
------------------------
The configurations are equal. State was lost at the same restart: the first loss is off before any update.

Looks like, but is not
----------------------
resume_scheduler_lost and resume_optimizer_lost: state was lost while settings are equal.

software_version_change: versions differ instead.

How to confirm
--------------
Replay the attempt's first steps with the settings reverted one by one.

Fix
---
Write every change into the run's timeline; change one setting per restart.

References
----------
OPT-175B, the lineage of runs 11.x and 12.x.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.differences import software
from forensics.correlate.settings import KNOWN
from forensics.model import Part
from forensics.vocabulary import Role, normalise

INFO = CauseInfo(
    id="config_edit",
    title="A setting was changed at a restart",
    family="resume",
    part=Part.TRIGGER,
    needs=("configuration of every attempt",),
    replay="replay with the settings reverted one by one",
)

NAMED = 3
"""Changes that are named."""


def examine(view: View) -> Examination:
    """Compares the settings of the attempt that the event follows with those of the attempt before."""
    found = Examination(view)
    restart = view.restart
    if restart is None:
        return found.exclude("no restart within 20 logged steps before the onset")
    if view.edits is None:
        found.missing.append("the configuration of every attempt")
        return found
    changed = [d for d in view.edits if not software(d.key)]
    if not changed:
        return found.exclude("no setting differs between the two attempts")
    known = [d for d in changed if normalise(d.key.rsplit(".", 1)[-1]) in KNOWN]
    shown = "; ".join(f"{d.key} from {d.a} to {d.b}" for d in (known or changed)[:NAMED])
    more = len(changed) - NAMED
    text = f"at the restart of step {restart.step} settings changed: {shown}" + (f"; and {more} more" if more > 0 else "")
    found.supports(weights.STRONG if known else weights.SUPPORT, text, Role.LOSS, restart.step)
    if view.rise is not None and view.anchor > restart.step:
        found.supports(weights.HINT, f"the event came {view.anchor - restart.step} steps after it", Role.LOSS, view.anchor)
    if view.rise is not None and restart.changed(Role.LOSS):
        found.contradicts(weights.AGAINST, "the first loss was off before any update: a setting does not do that", Role.LOSS, restart.step)
    first = (known or changed)[0]
    found.remedy = f"Set {first.key} back to {first.a}; if the change is wanted, make it alone and re-warm over 100 to 500 steps."
    return found
