"""The batch is so small that its noise rules the loss."""

from __future__ import annotations

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.model import EventKind, Part
from forensics.vocabulary import Role

INFO = CauseInfo(
    id="batch_noise_small",
    title="The noise of a small batch",
    family="optimization",
    part=Part.SUSCEPTIBILITY,
    needs=(Role.BATCH_SIZE,),
    replay="accumulate over eight steps: the noise falls by the root of eight",
)

SMALL = 4
"""Sequences per batch below which the noise of single examples shows."""


def examine(view: View) -> Examination:
    """Looks for noise that came with a small batch."""
    found = Examination(view)
    noisier = view.incident.member(EventKind.NOISE_CHANGE, EventKind.OSCILLATION)
    if noisier is None or noisier.kind is EventKind.OSCILLATION:
        return found
    sizes = view.curves.get(Role.BATCH_SIZE)
    if sizes is None:
        found.missing.append("the batch size of every step")
        return found
    after = float(sizes.values[min(sizes.at(noisier.onset_step + 1), len(sizes) - 1)])
    if after > SMALL:
        return found.exclude(f"the batch size is {after:g}")
    found.supports(weights.SUPPORT, f"{noisier.text}, at a batch size of {after:g}", Role.LOSS, noisier.onset_step)
    found.remedy = "Use a larger batch, or accumulate gradients over eight steps; the noise falls with the root of the batch size."
    return found
