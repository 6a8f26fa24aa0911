"""The loss is too good: the answer is in the input, or formatting makes the text easy.

What happened
-------------
The target leaks into the input (a missing shift, a label in a feature, an attention mask that sees ahead), or
artefacts of preprocessing fill the data with predictable tokens.

How it shows in logs
--------------------
The training loss lies 0.5 nats or more under what a comparable run reaches at the same tokens, while the validation
loss on another corpus is ordinary. Gradients are calm.

Within one run the rule sees a leak that begins: the training loss falls by a fifth or more at once, and the held-out loss
follows by less than 0.3 of that. A leak from the first step on needs the comparable run.

What would contradict it
------------------------
The validation loss on another corpus is equally low, and evaluations are good.

Looks like, but is not
----------------------
epoch_boundary_step and data_repeat_after_resume: the loss drops at a step; here it is low throughout.

loss_mask_error: few targets are counted, and the noise is larger.

overfitting: the gap grows with time.

How to confirm
--------------
Compute the loss per token on cleaned text (R4) and look at which tokens are nearly free. Decode inputs and targets
side by side.

Fix
---
Fix the preprocessing and start again: the weights have learned the artefact. One 175B project found extra backslashes
and formatting that made perplexity unreasonably low.

References
----------
OPT-175B chronicles, note at 10 %.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="target_leak_or_format",
    title="The target is visible, or the text is trivially predictable",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS, Role.VAL_LOSS),
    replay="the loss per token on cleaned text (R4)",
)

MUCH = 0.2
"""Share of the training loss that must be gone at once; the catalogue's half nat is for language models near two nats."""

FOLLOWED = 0.3
"""Share of the fall from which the held-out loss has followed: then the data are easier for everyone, or the model is better."""


def examine(view: View) -> Examination:
    """Looks for a training loss that fell at once while the held-out loss stayed where it was."""
    found = Examination(view)
    held_out = view.curves.get(Role.VAL_LOSS)
    if held_out is None:
        found.missing.append("a held-out loss from other data: it does not follow a leak")
        return found
    drop = view.incident.member(EventKind.DROP)
    if drop is None or drop.baseline is None or drop.height is None or drop.baseline <= 0:
        return found
    at = held_out.at(drop.onset_step)
    before, after = held_out.values[max(0, at - 3) : at], held_out.values[at : at + 5]
    if len(before) < 1 or len(after) < 2:
        found.missing.append("evaluations before and after the fall")
        return found
    fall, follow = -drop.height, float(np.median(before) - np.median(after))
    if fall < MUCH * drop.baseline:
        return found.exclude(f"the training loss fell by {fall:.3g} only")
    if follow >= FOLLOWED * fall:
        return found.exclude(f"the held-out loss fell as well, by {follow:.3g}")
    text = f"the training loss fell by {fall:.3g} at once, the held-out loss {'rose' if follow < 0 else 'fell'} by {abs(follow):.2g}"
    found.supports(weights.REQUIRED, text, Role.VAL_LOSS, int(held_out.steps[at]))
    if view.resume is not None:
        found.contradicts(weights.DOUBT, "the run was resumed just before: data that was already seen is a likelier reason", Role.LOSS)
    found.missing.append("decoded inputs and targets of a batch after the fall")
    found.remedy = f"Decode inputs and targets of the batches from step {drop.onset_step} on, and look at which tokens are nearly free."
    return found
