"""Loading cannot keep up, and throughput drops again and again.

What happened
-------------
Storage evicted the data, an index is rebuilt or walked, or there are too few workers. The GPUs idle until the next
batch arrives. The loss is unaffected.

How it shows in logs
--------------------
Repeated sharp drops of throughput with low GPU use in the gaps. The drops grow with the configured number of steps
(an index that is too long) or with evictions from a cache.

What would contradict it
------------------------
GPU use stays high during the drops.

Looks like, but is not
----------------------
straggler_throttle: a steady shift with one slow rank.

nccl_hang: does not end.

Checkpoint and evaluation pauses: periodic.

How to confirm
--------------
Run with synthetic batches: the drops are gone.

Fix
---
Local NVMe, another loader, more workers, a spare copy of the data. The SmolLM3 run expected a steady 13,500 to 14,000
tokens per second and GPU.

References
----------
SmolLM3 training playbook (first and second mystery).

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, fell, logged, named, part_of
from forensics.model import Event, EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="dataloader_starvation",
    title="The GPUs wait for data",
    family="hardware",
    part=Part.TRIGGER,
    needs=(Role.STEP_TIME, Role.THROUGHPUT, Role.GPU),
    replay="synthetic batches remove it",
    info=(EventKind.THROUGHPUT_CHANGE,),
)

OFTEN = 3
"""Slowdowns in one run from which they come and go (catalogue: repeated sharp drops)."""

WAITING = 0.2
"""Share of the step that waiting for data takes when it slows the run."""

IDLE = 0.9
"""Share of its use before that the GPU keeps when it does not wait."""


def examine(view: View) -> Examination:
    """Looks for repeated slowdowns, idle GPUs, or a logged time of waiting for data."""
    found = Examination(view)
    slower = view.incident.member(EventKind.THROUGHPUT_CHANGE)
    if slower is None:
        return found
    if not logged(view, Role.STEP_TIME, Role.THROUGHPUT):
        found.missing.append("step times or throughput")
        return found
    use = [s for s in named(view, "gpu") if part_of(s, "util", "utilization", "utilisation") or s.name.lower().endswith(".gpu")]
    name, levels = next(((s.name, f) for s in use if (f := fell(s, slower.onset_step)) is not None), ("", (1.0, 1.0)))
    if name and levels[1] < IDLE * levels[0]:
        found.supports(weights.REQUIRED, f"the use of the GPU fell from {levels[0]:.3g} to {levels[1]:.3g} %", name, slower.onset_step)
    elif use:
        return found.exclude("the GPUs were as busy during the slowdown as before")
    else:
        found.missing.append("the use of the GPUs: it is low where they wait for data")
    _waiting(found, view, slower)
    slowdowns = sum(1 for i in view.incidents if i.event.kind is EventKind.THROUGHPUT_CHANGE)
    if slowdowns >= OFTEN:
        found.supports(weights.SUPPORT, f"the run slowed down {slowdowns} times", slower.signal, slower.onset_step)
    found.remedy = "Put the data on local storage, use more workers or another loader; a run with synthetic batches shows the difference."
    return found


def _waiting(found: Examination, view: View, slower: Event) -> None:
    times = view.curves.get(Role.STEP_TIME)
    wait = next((s for s in named(view, "data", "time") if s.at(slower.onset_step) >= 5), None)
    if wait is None or times is None or len(wait.values[wait.at(slower.onset_step) :]) < 5:
        return
    before, after = _level(wait, slower.onset_step, -40), _level(wait, slower.onset_step, 40)
    longer = _level(times, slower.onset_step, 40) - _level(times, slower.onset_step, -40)
    if longer > 0 and after - before >= WAITING * longer and after >= 1.5 * before:
        text = f"waiting for data took {after:.3g} instead of {before:.3g}: {min((after - before) / longer, 1.0):.0%} of the slowdown"
        found.supports(weights.REQUIRED, text, wait.name, slower.onset_step)


def _level(signal: Prepared, step: int, points: int) -> float:
    at = signal.at(step)
    window = signal.values[at : at + points] if points > 0 else signal.values[max(0, at + points) : at]
    return float(np.median(window)) if len(window) else 0.0
