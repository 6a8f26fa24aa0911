"""The GPU reported an ECC error or a remapped memory row shortly before the event.

What happened
-------------
Device memory had an uncorrectable error, or a row was replaced by a spare. The driver may stop the process, or go on
with a page that held wrong bits for a while.

How it shows in logs
--------------------
Xid 48, 63, 64, 94 or 95 on a node of the job within the hour before the onset. 63 means a remapping was recorded, 64
that it failed. The training log itself shows a crash, a hang or nothing.

What would contradict it
------------------------
No such message on any node.

Looks like, but is not
----------------------
sdc_persistent: no message at all.

nccl_hang: a consequence of a dead peer.

resume_weights_wrong: a checkpoint saved by a failing node.

How to confirm
--------------
Replay from the checkpoint before the message on another device (R9).

Fix
---
Reset the GPU after 63, take the node out after 64. The vendor calls non-fatal ones benign; in one public run their
timing was suspicious.

References
----------
IDEFICS chronicle (entries of 05-19, 05-28 and 06-01). OPT-175B chronicles (restarts after ECC errors).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import Absent, EventKind, Part, Signal
from forensics.vocabulary import Role, normalise

INFO = CauseInfo(
    id="ecc_or_row_remap",
    title="A memory error was reported",
    family="hardware",
    part=Part.TRIGGER,
    needs=("ECC or Xid counters of every device",),
    replay="replay from the checkpoint before the message, on another device (R9)",
    info=(EventKind.UNFINISHED, EventKind.THROUGHPUT_CHANGE),
)

HOUR = 3600.0
"""Seconds before the onset in which an error counts (catalogue)."""

POINTS = 60
"""Logged points before the onset that stand for it where no times are logged."""

SLACK = 60.0
"""Seconds after the onset: counters are read periodically."""

_WORDS = (("ecc",), ("xid",), ("remap",), ("memory", "errors"))
"""Words of the names of counters of memory errors."""


def examine(view: View) -> Examination:
    """Looks for a counter of memory errors that went up in the hour before the event."""
    found = Examination(view)
    counters = [s for s in view.run.signals if len(s) > 1 and _counts(s)]
    if not counters:
        found.missing.append("ECC counters and Xid messages of the devices")
        return found
    if view.event.kind is EventKind.OVERFITTING:
        return found
    for counter in counters:
        rise = _rise(counter, view)
        if rise is None:
            continue
        corrected = "corrected" in normalise(counter.name).split("_")
        text = f"{counter.name} went from {rise[1]:g} to {rise[2]:g} at step {rise[0]}, shortly before the event"
        found.supports(weights.HINT if corrected else weights.REQUIRED, text, counter.name, rise[0], rise[2])
    if not found.supporting:
        return found.exclude("no memory error was counted in the hour before the event")
    found.missing.append("the kernel log: Xid 63 means a remapped row, 64 that remapping failed")
    found.remedy = "Reset the GPU after a remapped row, take the node out after a failed remap, and resume from a checkpoint before the message."
    return found


def _counts(signal: Signal) -> bool:
    name = normalise(signal.name)
    return any(all(word in name for word in words) for words in _WORDS)


def _rise(counter: Signal, view: View) -> tuple[int, float, float] | None:
    """Step, old and new value of the last increase shortly before the event."""
    values = np.asarray(counter.values, dtype=np.float64)
    ups = np.flatnonzero(np.diff(values) > 0) + 1
    loss = view.run.signal(Role.LOSS)
    if counter.wall_times is not None and not isinstance(loss, Absent) and loss.wall_times is not None and len(loss):
        curve = loss.curve(view.incident.attempts)
        onset = float(loss.wall_times[curve.index[min(int(np.searchsorted(curve.steps, view.onset)), len(curve) - 1)]])
        near = ups[(counter.wall_times[ups] >= onset - HOUR) & (counter.wall_times[ups] <= onset + SLACK)]
    else:
        near = ups[(counter.steps[ups] >= view.onset - POINTS * view.every) & (counter.steps[ups] <= view.onset + view.every)]
    return None if len(near) == 0 else (int(counter.steps[near[-1]]), float(values[near[-1] - 1]), float(values[near[-1]]))
