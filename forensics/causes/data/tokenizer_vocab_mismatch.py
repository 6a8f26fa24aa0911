"""Ids come from another tokenizer, leave the vocabulary, or carry the wrong special tokens.

What happened
-------------
The model was built for another vocabulary than the data were tokenised with. Ids fall on rows that were never
trained, out of range, or on the wrong meaning.

How it shows in logs
--------------------
The initial loss is more than one nat above ln(vocabulary size), or above the pretrained loss in fine-tuning. The
embedding gradient is concentrated on a few rows. Out-of-range ids stop the run with a device-side index assert.

What would contradict it
------------------------
The histogram of ids matches what the tokenizer gives on the same text.

Looks like, but is not
----------------------
init_scale_too_large: also a high initial loss, with large activations.

label_noise_or_shuffle: begins later.

loss_mask_error: the initial loss is off in either direction and the count of targets is wrong.

How to confirm
--------------
Decode a batch. Compare the vocabulary sizes of tokenizer, configuration and embedding.

Fix
---
Use the tokenizer the model was trained with, or resize the embedding and train the new rows; check the start token.

References
----------
Our own rule. The OPT-175B chronicles mention a fallback to another tokenizer, which shows that it happens.

"""

from __future__ import annotations

import math

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate import signs
from forensics.model import Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="tokenizer_vocab_mismatch",
    title="Token ids and vocabulary do not fit",
    family="data",
    part=Part.TRIGGER,
    needs=(Role.LOSS, "vocab_size in the configuration"),
    replay="decode the batch and look at the loss per token (R4)",
)

ABOVE = 1.0
"""Nats above ln(V) that random weights do not start from (catalogue)."""

MOST = 3.0
"""More than this many times ln(V) is a loss in another unit: summed, or of several terms."""

FIRST_POINTS = 3
"""Logged points that are the start; with every step logged the first update has hardly acted."""


def examine(view: View) -> Examination:
    """Compares the first loss with that of a guess among all tokens, for events at the start of a run."""
    found = Examination(view)
    loss, vocabulary = view.curves.get(Role.LOSS), view.settings.vocab
    if loss is None or len(loss) < FIRST_POINTS or vocabulary is None or vocabulary < 2:
        found.missing.append("the loss from the first step on, and vocab_size in the configuration")
        return found
    if not signs.young(view):
        return found
    guess, start = math.log(vocabulary), float(np.median(loss.values[:FIRST_POINTS]))
    if start <= guess + ABOVE:
        return found.exclude(f"the first loss {start:.3g} is not above ln({vocabulary:g}) = {guess:.3g}")
    if start > MOST * guess:
        found.missing.append(f"the loss as a mean per token: {start:.3g} is too much for any guess among {vocabulary:g} tokens")
        return found
    text = f"the first loss is {start:.3g}; a guess among {vocabulary:g} tokens costs {guess:.3g}"
    found.supports(weights.REQUIRED, text, Role.LOSS, int(loss.steps[0]), start)
    found.missing.append("a histogram of token ids")
    found.remedy = "Decode a batch, and compare the vocabulary sizes of tokenizer, configuration and embedding; check the start token."
    return found
