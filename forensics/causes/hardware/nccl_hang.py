"""Ranks wait for each other in different places, and the job stands still.

What happened
-------------
One rank left the common order of collectives: it crashed, took another branch, or ran out of data. The rest wait
until a timeout.

How it shows in logs
--------------------
The log stops, or a gap is over 20 usual step times. GPUs show 100 % use with no network traffic for ten minutes or
more; some ranks are in a collective, others in the loader or in evaluation.

What would contradict it
------------------------
A crash trace is there: then the hang is its consequence.

Looks like, but is not
----------------------
dataloader_starvation: gaps that end by themselves.

oom_or_mem_leak: one rank died of memory.

A run that simply ended or was stopped.

How to confirm
--------------
Dump the stacks of all ranks and group them: the odd one out is the cause.

Fix
---
Asynchronous error handling with timeouts, a barrier before evaluation, equal numbers of batches on every rank.

References
----------
BLOOM chronicle (hangs in evaluation at 45k and 51k). ByteRobust, SOSP 2025, arXiv 2509.16293 (no RDMA traffic for ten
minutes).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import named, part_of
from forensics.model import Absent, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="nccl_hang",
    title="A collective never finished",
    family="hardware",
    part=Part.TRIGGER,
    needs=(Role.GPU, Role.WALL_TIME),
    replay="none: dump the stacks of all ranks",
    info=(EventKind.UNFINISHED,),
)

BUSY = 95.0
"""Per cent of use that a GPU shows while it waits in a collective."""

STILL = 600.0
"""Seconds without a step at that use (catalogue: ten minutes)."""

STEPS = 20.0
"""... and usual step times (catalogue)."""


def examine(view: View) -> Examination:
    """For a log that ends unfinished: looks for GPUs that were busy long after the last step."""
    found = Examination(view)
    if view.event.kind is not EventKind.UNFINISHED:
        return found
    loss = view.run.signal(Role.LOSS)
    use = [s.signal for s in named(view, "gpu") if part_of(s, "util", "utilization", "utilisation") or s.name.lower().endswith(".gpu")]
    timed = [s for s in use if s.wall_times is not None and len(s) > 2]
    if isinstance(loss, Absent) or loss.wall_times is None or len(loss) < 3 or not timed:
        found.missing.append("wall times of the steps and of the use of the GPUs after the last step, and stack traces of all ranks")
        return found
    last = float(loss.wall_times.max())
    usual = float(np.median(np.diff(np.sort(loss.wall_times))))
    for signal in timed:
        assert signal.wall_times is not None
        after = np.asarray(signal.values, dtype=np.float64)[signal.wall_times > last + usual]
        still = float(signal.wall_times.max()) - last
        if len(after) >= 3 and still >= max(STILL, STEPS * usual) and float(np.median(after)) >= BUSY:
            text = f"{signal.name} was at {np.median(after):.0f} % for {still / 60:.0f} minutes after the last step: it waited for something"
            found.supports(weights.REQUIRED, text, signal.name, view.onset)
            break
    if not found.supporting:
        return found.exclude("no GPU was busy for ten minutes after the last step")
    found.missing.append("stack traces of all ranks: the odd one out is the cause")
    found.remedy = "Dump and group the stacks of all ranks; set timeouts, a barrier before evaluation, and equal numbers of batches on every rank."
    return found
