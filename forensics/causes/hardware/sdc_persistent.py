"""One chip keeps making silent errors.

What happened
-------------
A damaged device returns wrong results under some loads, without any error message. Whatever rank it holds injects
errors into the shared gradient.

How it shows in logs
--------------------
Events come back only while a certain node is in the job (Fisher's exact test below 0.01, over at least three events)
and stop when it is gone. Where losses or gradient norms are logged per rank, the same rank stands out at every event.

What would contradict it
------------------------
Events are independent of the nodes in use. A batch, the learning rate or an interval explains the recurrence. Another
rank stands out each time.

Looks like, but is not
----------------------
sdc_transient: once, not reproducible on the same device.

bad_batch_outlier and repeated_ngram_docs: recurrence follows the data.

lr_too_high: recurrence follows the learning rate.

How to confirm
--------------
Replay the step on the suspect device and on another one (R9). Back on the first and calm on the second names the
device.

Fix
---
Take the node out of the job, run a burn-in, replace the device. Resume from a checkpoint before its first event.

References
----------
Megatron-LM rerun state machine. Llama 3 report (6 silent corruptions among 419 unexpected interruptions). Gemini
report (an estimate of one per one to two weeks).

"""

from __future__ import annotations

from collections import Counter

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.patterns import FEWEST, Thing
from forensics.correlate.ranks import outlier
from forensics.model import EventKind, Part, Severity
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="sdc_persistent",
    title="A device computes wrongly again and again",
    family="hardware",
    part=Part.TRIGGER,
    needs=("node and device of every rank", Role.RANK_LOSS),
    replay="replay on the suspect device and on another (R9)",
)

_SLOW = frozenset({EventKind.DRIFT, EventKind.OVERFITTING, EventKind.LR_ANOMALY, EventKind.RESTART, EventKind.BATCH_SIZE_CHANGE})
"""Kinds that no single wrong result makes."""


def examine(view: View) -> Examination:
    """Looks for events that come only with one node, or with one rank that stands out every time."""
    found = Examination(view)
    alarms = [i.event.onset_step for i in view.incidents if i.event.severity is not Severity.INFO and i.event.kind not in _SLOW]
    if len(set(alarms)) < FEWEST or view.event.kind in _SLOW:
        return found
    place = view.pattern(Thing.PLACE)
    if place is not None:
        found.supports(weights.STRONG, place.text, place.signal, view.onset, place.value)
    outliers = [o for o in (outlier(view.curves, s) for s in sorted(set(alarms))) if o is not None]
    ranks = Counter(o.name for o in outliers)
    if ranks and ranks.most_common(1)[0][1] >= FEWEST:
        name, times = ranks.most_common(1)[0]
        text = f"{name} stands out from the other ranks at {times} of {len(set(alarms))} events"
        found.supports(weights.REQUIRED, text, name, view.onset)
    elif len(outliers) >= FEWEST:
        found.contradicts(weights.AGAINST, "another rank stands out each time", outliers[0].name, view.onset)
    if place is None and not outliers:
        found.missing.append("the node and device of every rank, and loss or gradient norm per rank")
    other = next((p for p in view.patterns if p.thing in {Thing.BATCH, Thing.SHARD, Thing.LR_HIGH, Thing.INTERVAL}), None)
    if other is not None and found.supporting:
        found.contradicts(weights.DOUBT, f"something else explains the recurrence: {other.text}", other.signal, view.onset)
    found.remedy = "Take the node out of the job and run a burn-in on it; resume from a checkpoint before its first event."
    return found
