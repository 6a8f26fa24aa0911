"""Causes of the family hardware that have no rule."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

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
    Unseen(
        id="ecc_or_row_remap",
        title="A memory error was reported",
        family="hardware",
        part=Part.TRIGGER,
        needs=("kernel log with Xid messages", "ECC counters", "node of every rank"),
        replay="replay from the checkpoint before the message, on another device (R9)",
        manual="""
The GPU reported an ECC error or a remapped memory row shortly before the event.

What happened
Device memory had an uncorrectable error, or a row was replaced by a spare. The driver may stop the process, or go on
with a page that held wrong bits for a while.

How it shows in logs
Xid 48, 63, 64, 94 or 95 on a node of the job within the hour before the onset. 63 means a remapping was recorded, 64
that it failed. The training log itself shows a crash, a hang or nothing.

What would contradict it
No such message on any node.

Looks like, but is not
sdc_persistent: no message at all.

nccl_hang: a consequence of a dead peer.

resume_weights_wrong: a checkpoint saved by a failing node.

How to confirm
Replay from the checkpoint before the message on another device (R9).

Fix
Reset the GPU after 63, take the node out after 64. The vendor calls non-fatal ones benign; in one public run their
timing was suspicious.

References
IDEFICS chronicle (entries of 05-19, 05-28 and 06-01). OPT-175B chronicles (restarts after ECC errors).
""",
    ),
    Unseen(
        id="straggler_throttle",
        title="One device slows the whole job",
        family="hardware",
        part=Part.TRIGGER,
        needs=(Role.STEP_TIME, Role.THROUGHPUT, Role.GPU, "step time per rank"),
        replay="exclude nodes by halving",
        manual="""
A hot, throttled or badly connected device holds up every step. The loss is unaffected.

What happened
Synchronous training runs at the pace of its slowest member. A lowered clock, a bad link or a shared host on one node
costs everyone.

How it shows in logs
Step time shifts by 4 % or more for at least 50 steps while the loss goes on as before. One rank or node is slower
than the rest.

What would contradict it
All ranks slow down together: storage or software.

Looks like, but is not
dataloader_starvation: repeated sharp drops with idle GPUs.

software_version_change: starts with a new version.

Checkpoint and evaluation pauses: periodic and short.

How to confirm
Compare step times, clocks and temperatures per rank. Exclude nodes by halving; a test of single nodes can understate
it (2.5 % where the job lost 5 %).

Fix
Replace the node or fix cooling and links. In the public 176B run one GPU cost 5 % (149 to 140 TFLOPs).

References
BLOOM chronicle, 2022-04-28. ByteRobust, SOSP 2025, arXiv 2509.16293 (stack aggregation every 10 s, eviction after 5
rounds).
""",
    ),
    Unseen(
        id="nccl_hang",
        title="A collective never finished",
        family="hardware",
        part=Part.TRIGGER,
        needs=(Role.WALL_TIME, "stack traces of all ranks", "network traffic", Role.GPU),
        replay="none: dump the stacks of all ranks",
        manual="""
Ranks wait for each other in different places, and the job stands still.

What happened
One rank left the common order of collectives: it crashed, took another branch, or ran out of data. The rest wait
until a timeout.

How it shows in logs
The log stops, or a gap is over 20 usual step times. GPUs show 100 % use with no network traffic for ten minutes or
more; some ranks are in a collective, others in the loader or in evaluation.

What would contradict it
A crash trace is there: then the hang is its consequence.

Looks like, but is not
dataloader_starvation: gaps that end by themselves.

oom_or_mem_leak: one rank died of memory.

A run that simply ended or was stopped.

How to confirm
Dump the stacks of all ranks and group them: the odd one out is the cause.

Fix
Asynchronous error handling with timeouts, a barrier before evaluation, equal numbers of batches on every rank.

References
BLOOM chronicle (hangs in evaluation at 45k and 51k). ByteRobust, SOSP 2025, arXiv 2509.16293 (no RDMA traffic for ten
minutes).
""",
    ),
    Unseen(
        id="dataloader_starvation",
        title="The GPUs wait for data",
        family="hardware",
        part=Part.TRIGGER,
        needs=(Role.STEP_TIME, Role.THROUGHPUT, Role.GPU, "latency of storage"),
        replay="synthetic batches remove it",
        manual="""
Loading cannot keep up, and throughput drops again and again.

What happened
Storage evicted the data, an index is rebuilt or walked, or there are too few workers. The GPUs idle until the next
batch arrives. The loss is unaffected.

How it shows in logs
Repeated sharp drops of throughput with low GPU use in the gaps. The drops grow with the configured number of steps
(an index that is too long) or with evictions from a cache.

What would contradict it
GPU use stays high during the drops.

Looks like, but is not
straggler_throttle: a steady shift with one slow rank.

nccl_hang: does not end.

Checkpoint and evaluation pauses: periodic.

How to confirm
Run with synthetic batches: the drops are gone.

Fix
Local NVMe, another loader, more workers, a spare copy of the data. The SmolLM3 run expected a steady 13,500 to 14,000
tokens per second and GPU.

References
SmolLM3 training playbook (first and second mystery).
""",
    ),
    Unseen(
        id="oom_or_mem_leak",
        title="Memory ran out",
        family="hardware",
        part=Part.TRIGGER,
        needs=("device and host memory per step", Role.SEQ_LEN),
        replay="replay the longest batch (R3)",
        manual="""
Memory grew to its limit, or one batch was too large for it.

What happened
Tensors kept alive from step to step, a growing cache, or fragmentation fill the memory; or a batch with the longest
sequences does not fit. The process is killed.

How it shows in logs
Memory drifts up until the log ends, or the last batch has the largest sequence length. The log ends without warning.

What would contradict it
Memory is flat and the last batch ordinary.

Looks like, but is not
nccl_hang: what the other ranks see when one of them died.

A run that was stopped on purpose.

How to confirm
Replay the longest batch (R3) and watch the peak memory.

Fix
Bucket by length, activation checkpointing, detach what is logged; restart periodically if the leak is not yours.

References
Our own rule.
""",
    ),
)
