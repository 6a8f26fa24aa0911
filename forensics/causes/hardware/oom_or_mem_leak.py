"""Memory grew to its limit, or one batch was too large for it.

What happened
-------------
Tensors kept alive from step to step, a growing cache, or fragmentation fill the memory; or a batch with the longest
sequences does not fit. The process is killed.

How it shows in logs
--------------------
Memory drifts up until the log ends, or the last batch has the largest sequence length. The log ends without warning.

What would contradict it
------------------------
Memory is flat and the last batch ordinary.

Looks like, but is not
----------------------
nccl_hang: what the other ranks see when one of them died.

A run that was stopped on purpose.

How to confirm
--------------
Replay the longest batch (R3) and watch the peak memory.

Fix
---
Bucket by length, activation checkpointing, detach what is logged; restart periodically if the leak is not yours.

References
----------
Our own rule.

"""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, named, part_of, trend_before
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="oom_or_mem_leak",
    title="Memory ran out",
    family="hardware",
    part=Part.TRIGGER,
    needs=(Role.GPU, Role.SEQ_LEN),
    replay="replay the longest batch (R3)",
    info=(EventKind.UNFINISHED,),
)

GROWN = 1.1
"""Factor by which memory must have grown to the end."""

FULL = 90.0
"""Per cent of the memory from which it is nearly full."""

KILLED = frozenset({137, -9, 9})
"""Exit codes of a process that was killed, as the kernel does when memory runs out."""


def examine(view: View) -> Examination:
    """For a log that ends unfinished: looks for memory that grew to the end, or a longest batch at the end."""
    found = Examination(view)
    if view.event.kind is not EventKind.UNFINISHED:
        return found
    memory, lengths = _memory(view), view.curves.get(Role.SEQ_LEN)
    if not memory and (lengths is None or len(lengths) < 20):
        found.missing.append("device and host memory, or the sequence length of every batch")
        return found
    trends = [(s, t) for s, t in ((s, trend_before(s, int(s.steps[-1]) + 1)) for s in memory) if t is not None and t.rises and t.factor >= GROWN]
    if trends:
        signal, most = max(trends, key=lambda pair: pair[1].factor)
        text = f"{most.name} grew from {most.start:.4g} to {most.end:.4g} up to the end of the log"
        found.supports(weights.REQUIRED, text, most.name, most.last_step, most.end)
        if part_of(signal, "percent", "allocated", "pct") and FULL <= most.end <= 100:
            found.supports(weights.SUPPORT, "it was nearly full", most.name, most.last_step)
    longest = lengths is not None and len(lengths) >= 20 and lengths.values[-1] >= lengths.values.max() > lengths.values.min()
    if longest and lengths is not None:
        found.supports(weights.SUPPORT, f"the last batch was the longest of the run ({lengths.values[-1]:g})", Role.SEQ_LEN, int(lengths.steps[-1]))
    if not found.supporting:
        return found.exclude("memory was flat and the last batch ordinary")
    if view.run.notes.get("exit_code") in KILLED:
        found.supports(weights.SUPPORT, f"the process was killed (exit code {view.run.notes['exit_code']})")
    found.remedy = "Detach what is kept between steps, bucket by length or checkpoint activations; restart periodically if the leak is not yours."
    return found


def _memory(view: View) -> list[Prepared]:
    return [s for s in (*named(view, "memory"), *named(view, "mem", "gb")) if not part_of(s, "errors", "clock", "temp")]
