"""Causes of the family hardware that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="sdc_persistent",
        title="A device computes wrongly again and again",
        family="hardware",
        part=Part.TRIGGER,
        needs=("node and device of every rank per attempt", "gradient norm per rank"),
        replay="replay on the suspect device and on another (R9)",
        manual="""
One chip keeps making silent errors.

What happened
A damaged device returns wrong results under some loads, without any error message. Whatever rank it holds injects
errors into the shared gradient.

How it shows in logs
Events come back only while a certain node is in the job (Fisher's exact test below 0.01) and stop when it is gone.
The gradient norm of its rank stands out.

What would contradict it
Events are independent of the nodes in use.

Looks like, but is not
sdc_transient: once, not reproducible on the same device.

bad_batch_outlier and repeated_ngram_docs: recurrence follows the data.

lr_too_high: recurrence follows the learning rate.

How to confirm
Replay the step on the suspect device and on another one (R9). Back on the first and calm on the second names the
device.

Fix
Take the node out of the job, run a burn-in, replace the device. Resume from a checkpoint before its first event.

References
Megatron-LM rerun state machine. Llama 3 report (6 silent corruptions among 419 unexpected interruptions). Gemini
report (an estimate of one per one to two weeks).
""",
    ),
)
