"""The discriminator wins and the generator gets no gradient, or the generator collapses to few outputs.

What happened
-------------
When the discriminator tells real from generated without error, its output saturates and the generator's gradient
vanishes. In mode collapse the generator finds a few outputs that always pass.

How it shows in logs
--------------------
The discriminator's loss stays below 0.1 for 500 steps or more while the generator's drifts up; or both are flat and
the diversity of samples falls.

What would contradict it
------------------------
Both losses stay in balance.

Looks like, but is not
----------------------
lr_too_high: both swing with growing amplitude.

vanishing_or_dead_units: without an opponent.

How to confirm
--------------
Replay with the discriminator's learning rate divided by 2 to 4 (R6), or with a gradient penalty (R14).

Fix
---
Two learning rates, gradient penalty, spectral normalisation.

References
----------
Practitioners' notes on GANs. The bounds are our own.

"""

from __future__ import annotations

import numpy as np

from forensics.causes.interface import CauseInfo, Examination, View, weights
from forensics.correlate.trends import Prepared, named, trend_before
from forensics.correlate.view import RISES
from forensics.model import EventKind, Part

INFO = CauseInfo(
    id="gan_imbalance",
    title="Generator and discriminator are out of balance",
    family="architecture",
    part=Part.SUSCEPTIBILITY,
    needs=("loss of the discriminator", "loss of the generator"),
    replay="replay with the discriminator's learning rate divided by 2 to 4 (R6), or a gradient penalty (R14)",
    info=(*RISES, EventKind.NOISE_CHANGE),
)

WON = 0.1
"""Discriminator loss below which it has won (catalogue; 0.69 per term is a draw)."""

POINTS = 100
"""Logged points before the event over which it must have been that low (catalogue: 500 steps)."""

FEWEST = 20
"""... or after the event, where the event is its fall."""

DISCRIMINATOR = ("d", "disc", "discriminator", "critic")
GENERATOR = ("g", "gen", "generator")
"""Words of names that say whose loss it is."""


def examine(view: View) -> Examination:
    """Looks for a discriminator loss near zero while the generator's loss drifts up."""
    found = Examination(view)
    opponent, generator = _loss(view, DISCRIMINATOR), _loss(view, GENERATOR)
    if opponent is None or generator is None:
        found.missing.append("the losses of discriminator and generator apart")
        return found
    at = opponent.at(view.anchor)
    fell = view.event.kind is EventKind.DROP
    window = opponent.values[at : at + POINTS] if fell else opponent.values[max(0, at - POINTS) : at]
    if len(window) < (FEWEST if fell else POINTS):
        return found
    level = float(np.median(window))
    if not 0 <= level < WON:
        return found.exclude(f"the discriminator's loss was {level:.3g} before the event: it had not won")
    text = f"the discriminator's loss was {level:.2g} over {len(window)} logged steps: it tells everything apart ({opponent.name})"
    found.supports(weights.STRONG if fell else weights.REQUIRED, text, opponent.name, view.anchor)
    trend = trend_before(generator, view.anchor)
    if trend is not None and trend.rises:
        text = f"the generator's loss drifted from {trend.start:.3g} to {trend.end:.3g} since step {trend.first_step} ({generator.name})"
        found.supports(weights.SUPPORT, text, generator.name, trend.last_step)
    found.missing.append("a measure of the diversity of samples")
    found.remedy = "Divide the discriminator's learning rate by 2 to 4, or add a gradient penalty or spectral normalisation."
    return found


def _loss(view: View, words: tuple[str, ...]) -> Prepared | None:
    return next(iter(named(view, "loss", one_of=words)), None)
