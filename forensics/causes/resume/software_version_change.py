"""A new version computes something slightly differently.

What happened
-------------
A restart brought another kernel, library or driver. Numerics, fusion or defaults differ, and the dynamics of the run
change at that boundary.

How it shows in logs
--------------------
Activation RMS, gradient norm or throughput step at the boundary of two attempts whose versions differ while the
configuration does not.

What would contradict it
------------------------
The versions on both sides are equal. A setting was changed at the same restart.

Looks like, but is not
----------------------
config_edit: settings differ.

straggler_throttle: throughput steps without a restart.

resume_weights_wrong: the first loss after the restart is already off.

How to confirm
--------------
Repeat one step from a fixed checkpoint and batch under both versions; bisect if they differ (R13).

Fix
---
Pin versions; log them per attempt; change one thing per restart.

References
----------
OPT-175B chronicles (a framework update changed the path of activation norms and gave 2 % speed).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.differences import software
from forensics.correlate.move import LEVEL_POINTS, level_change
from forensics.correlate.trends import Prepared
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="software_version_change",
    title="A library, kernel or driver changed",
    family="resume",
    part=Part.TRIGGER,
    needs=("code and library versions of every attempt",),
    replay="bisect versions on a fixed checkpoint and batch (R13; described, not run)",
    info=(EventKind.THROUGHPUT_CHANGE,),
)

WATCHED = (Role.ACT_RMS, Role.GRAD_NORM, Role.THROUGHPUT, Role.STEP_TIME)
"""Signals whose level such a change moves."""

STEP = 0.02
"""Relative change of a level at the boundary that counts (published: 2 % speed)."""

SDS = 5.0
"""... and its size in standard errors of the level."""


def examine(view: View) -> Examination:
    """Looks for versions that differ between two attempts while the settings do not, and for levels that step there."""
    found = Examination(view)
    restart = view.restart
    if restart is None:
        return found.exclude("no restart within 20 logged steps before the onset")
    if view.edits is None:
        found.missing.append("code and library versions of every attempt")
        return found
    versions = [d for d in view.edits if software(d.key)]
    if not versions:
        return found.exclude("no version that is logged differs between the two attempts")
    shown = "; ".join(f"{d.key} from {d.a} to {d.b}" for d in versions[:3])
    found.supports(weights.REQUIRED, f"at the restart of step {restart.step} software changed: {shown}", step=restart.step)
    for role in WATCHED:
        signal = view.curves.get(role)
        change = None if signal is None else _stepped(signal, restart.step)
        if signal is not None and change is not None:
            found.supports(weights.SUPPORT, f"{signal.name} stepped by x{change:.3g} there", role, restart.step)
            break
    if len(versions) < len(view.edits):
        found.contradicts(weights.DOUBT, "settings were changed at the same restart", step=restart.step)
    found.remedy = f"Go back to {versions[0].key} {versions[0].a}, or repeat one step from a fixed checkpoint under both versions and bisect."
    return found


def _stepped(signal: Prepared, step: int) -> float | None:
    """The factor by which the level changed at a step; None where it did not by more than its noise explains."""
    change = level_change(signal, step)
    at = signal.at(step)
    noise = signal.noise[max(0, at - LEVEL_POINTS) : at + LEVEL_POINTS]
    if change is None or len(noise) == 0 or abs(change - 1) < STEP:
        return None
    error = 1.25 * float(np.median(noise)) / LEVEL_POINTS**0.5
    return change if abs(change - 1) >= SDS * error else None
