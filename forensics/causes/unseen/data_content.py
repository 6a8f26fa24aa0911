"""Causes of the family data that have no rule: wrong labels, tokens and inputs."""

from __future__ import annotations

from forensics.causes.unseen.entry import Unseen
from forensics.model import Part
from forensics.vocabulary import Role

TABLE: tuple[Unseen, ...] = (
    Unseen(
        id="label_noise_or_shuffle",
        title="Part of the targets is wrong",
        family="data",
        part=Part.TRIGGER,
        needs=(Role.LOSS_BY_SOURCE, Role.ACCURACY, Role.BATCH_ID, "loss of every sample"),
        replay="the loss per sample with clean labels (R4); the batch is as bad at an earlier state (R2)",
        manual="""
From some point on a share of the labels does not belong to its inputs.

What happened
A join, a shuffle or a column mix-up separated inputs from targets for part of the stream. The model cannot learn that
part; its loss has a floor near chance.

How it shows in logs
The loss steps to a higher floor and stays. Accuracy on the affected batches is near chance, and the gradient norm is
up modestly, 1.5 to 3 times. Losses per sample fall into two humps.

What would contradict it
Losses per sample form one hump.

Looks like, but is not
mixture_shift: the loss comes down again as the new data are learned.

degenerate_data_pocket: ends after a fixed number of samples.

tokenizer_vocab_mismatch: wrong from the first step.

How to confirm
Compute the loss of every sample with the logged and with clean labels (R4). On an earlier healthy state the same
batches are as bad (R2).

Fix
Repair the join, relabel or drop the affected part, and resume from before it.

References
Common practice; injected in the same form by DynFault, Jahan 2026, arXiv 2606.26492. The bounds are our own.
""",
    ),
    Unseen(
        id="target_leak_or_format",
        title="The target is visible, or the text is trivially predictable",
        family="data",
        part=Part.TRIGGER,
        needs=(Role.VAL_LOSS, "the loss of a comparable run", "decoded samples"),
        replay="the loss per token on cleaned text (R4)",
        manual="""
The loss is too good: the answer is in the input, or formatting makes the text easy.

What happened
The target leaks into the input (a missing shift, a label in a feature, an attention mask that sees ahead), or
artefacts of preprocessing fill the data with predictable tokens.

How it shows in logs
The training loss lies 0.5 nats or more under what a comparable run reaches at the same tokens, while the validation
loss on another corpus is ordinary. Gradients are calm.

What would contradict it
The validation loss on another corpus is equally low, and evaluations are good.

Looks like, but is not
epoch_boundary_step and data_repeat_after_resume: the loss drops at a step; here it is low throughout.

loss_mask_error: few targets are counted, and the noise is larger.

overfitting: the gap grows with time.

How to confirm
Compute the loss per token on cleaned text (R4) and look at which tokens are nearly free. Decode inputs and targets
side by side.

Fix
Fix the preprocessing and start again: the weights have learned the artefact. One 175B project found extra backslashes
and formatting that made perplexity unreasonably low.

References
OPT-175B chronicles, note at 10 %.
""",
    ),
    Unseen(
        id="tokenizer_vocab_mismatch",
        title="Token ids and vocabulary do not fit",
        family="data",
        part=Part.TRIGGER,
        needs=(Role.LOSS, "histogram of token ids", "vocabulary size of model and tokenizer", Role.GRAD_NORM_GROUP),
        replay="decode the batch and look at the loss per token (R4)",
        manual="""
Ids come from another tokenizer, leave the vocabulary, or carry the wrong special tokens.

What happened
The model was built for another vocabulary than the data were tokenised with. Ids fall on rows that were never
trained, out of range, or on the wrong meaning.

How it shows in logs
The initial loss is more than one nat above ln(vocabulary size), or above the pretrained loss in fine-tuning. The
embedding gradient is concentrated on a few rows. Out-of-range ids stop the run with a device-side index assert.

What would contradict it
The histogram of ids matches what the tokenizer gives on the same text.

Looks like, but is not
init_scale_too_large: also a high initial loss, with large activations.

label_noise_or_shuffle: begins later.

loss_mask_error: the initial loss is off in either direction and the count of targets is wrong.

How to confirm
Decode a batch. Compare the vocabulary sizes of tokenizer, configuration and embedding.

Fix
Use the tokenizer the model was trained with, or resize the embedding and train the new rows; check the start token.

References
Our own rule. The OPT-175B chronicles mention a fallback to another tokenizer, which shows that it happens.
""",
    ),
    Unseen(
        id="input_scale_mismatch",
        title="Inputs are scaled differently",
        family="data",
        part=Part.TRIGGER,
        needs=("activation RMS of the first layer", Role.VAL_LOSS, Role.ACT_RMS),
        replay="replay with the old transform (R3)",
        manual="""
Training and evaluation, or old and new data, are normalised in different ways.

What happened
Mean and variance, value range, resolution or channel order differ between two pipelines. The first layer sees inputs
on another scale, and everything behind it works out of range.

How it shows in logs
The activation RMS of the first layer jumps at the step where the pipeline changed, or the gap between training and
validation is large from the start.

What would contradict it
The first layer's activation RMS is equal on both sides.

Looks like, but is not
overfitting: the gap grows slowly.

norm_layer_instability: the gap comes from batch statistics.

mixture_shift: the inputs are scaled as before, their content is new.

How to confirm
Evaluate with the training transform, and train a few steps with the old transform (R3).

Fix
One definition of the transform, used by training, validation and inference.

References
Our own rule.
""",
    ),
)
