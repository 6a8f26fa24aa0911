"""A hot, throttled or badly connected device holds up every step. The loss is unaffected.

What happened
-------------
Synchronous training runs at the pace of its slowest member. A lowered clock, a bad link or a shared host on one node
costs everyone.

How it shows in logs
--------------------
Step time shifts by 4 % or more for at least 50 steps while the loss goes on as before. One rank or node is slower
than the rest.

What would contradict it
------------------------
All ranks slow down together: storage or software.

Looks like, but is not
----------------------
dataloader_starvation: repeated sharp drops with idle GPUs.

software_version_change: starts with a new version.

Checkpoint and evaluation pauses: periodic and short.

How to confirm
--------------
Compare step times, clocks and temperatures per rank. Exclude nodes by halving; a test of single nodes can understate
it (2.5 % where the job lost 5 %).

Fix
---
Replace the node or fix cooling and links. In the public 176B run one GPU cost 5 % (149 to 140 TFLOPs).

References
----------
BLOOM chronicle, 2022-04-28. ByteRobust, SOSP 2025, arXiv 2509.16293 (stack aggregation every 10 s, eviction after 5
rounds).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import fell, logged, named
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="straggler_throttle",
    title="One device slows the whole job",
    family="hardware",
    part=Part.TRIGGER,
    needs=(Role.STEP_TIME, Role.THROUGHPUT),
    replay="exclude nodes by halving",
    info=(EventKind.THROUGHPUT_CHANGE,),
)

OFTEN = 3
"""Slowdowns in one run from which they come and go, as where data are late."""

NEAR = 12
"""Logged points within which an alarm of the loss belongs to the slowdown."""

SLOWEST = 1.1
"""Times the median of the ranks that the slowest rank needs."""


def examine(view: View) -> Examination:
    """Looks for one lasting slowdown with an unaffected loss, a falling clock, or one slow rank."""
    found = Examination(view)
    slower = view.incident.member(EventKind.THROUGHPUT_CHANGE)
    if slower is None:
        return found
    if not logged(view, Role.STEP_TIME, Role.THROUGHPUT):
        found.missing.append("step times or throughput")
        return found
    found.supports(weights.SUPPORT, slower.text, slower.signal, slower.onset_step)
    slowdowns = sum(1 for i in view.incidents if i.event.kind is EventKind.THROUGHPUT_CHANGE)
    if slowdowns >= OFTEN:
        found.contradicts(weights.DOUBT, f"the run slowed down {slowdowns} times", slower.signal, slower.onset_step)
    alarms = [i.event for i in view.incidents if i.event.severity is not Severity.INFO]
    if not any(abs(a.onset_step - slower.onset_step) <= NEAR * view.every for a in alarms) and view.curves.get(Role.LOSS) is not None:
        found.supports(weights.SUPPORT, "the loss is unaffected", Role.LOSS, slower.onset_step)
    if view.resume is not None:
        found.contradicts(weights.DOUBT, "it began at a restart, where software or placement may have changed", slower.signal, slower.onset_step)
    clock = next(((s.name, f) for s in named(view, "clock") if (f := fell(s, slower.onset_step)) is not None), None)
    if clock is not None:
        found.supports(weights.REQUIRED, f"{clock[0]} fell from {clock[1][0]:.4g} to {clock[1][1]:.4g}: the device was throttled", clock[0], slower.onset_step)
    _ranks(found, view, slower.onset_step)
    found.remedy = "Compare step times, clocks and temperatures per rank, exclude nodes by halving, and replace the slow one."
    return found


def _ranks(found: Examination, view: View, step: int) -> None:
    """One rank slower than the others tells a device from storage or software."""
    ranks = [s for s in named(view, "rank", "time") if len(s.values[s.at(step) :]) >= 3]
    if len(ranks) < 3:
        found.missing.append("step time, clock and temperature per rank")
        return
    means = {s.name: float(np.median(s.values[s.at(step) :][:50])) for s in ranks}
    usual, (name, slowest) = float(np.median(list(means.values()))), max(means.items(), key=lambda pair: pair[1])
    if slowest >= SLOWEST * usual:
        found.supports(weights.REQUIRED, f"{name} needs {slowest:.3g}, the others {usual:.3g}", name, step)
    else:
        found.contradicts(weights.AGAINST, "all ranks slowed down together: storage or software", name, step)
