"""Several workers or ranks draw the same samples or augmentations.

What happened
-------------
Loader workers or ranks start from the same seed, or from the same one every epoch. The effective batch is smaller
than it looks, and augmentations repeat.

How it shows in logs
--------------------
Within one step the same sample id stands at several ranks or workers more often than chance allows. The losses of
different ranks correlate above 0.9. Noise is larger than the batch size explains; training fits faster than it
generalises.

The rule correlates the changes of the losses of ranks from step to step.

What would contradict it
------------------------
Sample ids within a step are distinct, and rank losses are independent.

Looks like, but is not
----------------------
batch_noise_small: the batch is truly small.

data_repeat_after_resume: repeats across time, not across ranks.

rank_seed_correlated: the weights are alike, not the data.

How to confirm
--------------
Print sample ids of all ranks for one step; audit the seeds (R11).

Fix
---
Derive the seed from rank, worker and epoch.

References
----------
Issue 19 of sparse-to-dense (worker seeds equal to the worker id, so that a resumed run repeats its data). Reported:
the duplication of NumPy seeds in loader workers.

"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, rank_correlation, together
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="worker_rng_duplicate",
    title="Workers or ranks share a random seed",
    family="data",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.RANK_LOSS,),
    replay="audit the seeds of ranks and workers (R11)",
)

ALIKE = 0.9
"""Correlation of the step-to-step changes of two ranks' losses from which they see the same samples (catalogue)."""

RANKS = 8
"""Ranks that are compared with each other; a shared seed shows among the first."""

WINDOW = 1000
"""Logged points on either side of the event that are compared."""

FEWEST = 30
"""Steps that make a correlation."""

_KINDS = (EventKind.NOISE_CHANGE, EventKind.OSCILLATION, EventKind.OVERFITTING)


def examine(view: View) -> Examination:
    """Correlates the changes of the losses of different ranks."""
    found = Examination(view)
    if len([s for s in view.run.all(Role.RANK_LOSS) if len(s) > FEWEST]) < 2:
        found.missing.append("the loss of every rank, or sample ids per rank")
        return found
    ranks = [s for s in view.curves.every(Role.RANK_LOSS) if len(s) > FEWEST][:RANKS] if view.event.kind in _KINDS else []
    if len(ranks) < 2:
        return found
    alike, first, second = max((_alike(a, b, view), a.name, b.name) for a, b in combinations(ranks, 2))
    if alike < ALIKE:
        return found.exclude(f"the losses of different ranks move independently (correlation of changes at most {alike:.2f})")
    text = f"{first} and {second} change alike from step to step (correlation {alike:.2f}): they see the same samples"
    found.supports(weights.REQUIRED, text, Role.RANK_LOSS, view.anchor)
    found.missing.append("sample ids of all ranks for one step")
    found.remedy = "Derive the seed of loader and augmentation from rank, worker and epoch."
    return found


def _alike(a: Prepared, b: Prepared, view: View) -> float:
    reach = int(WINDOW * max(a.every, b.every))
    x, y = together(a, b, view.anchor - reach, view.anchor + reach)
    if len(x) <= FEWEST:
        return 0.0
    return rank_correlation(np.diff(x), np.diff(y))
