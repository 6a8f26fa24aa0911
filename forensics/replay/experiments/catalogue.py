"""The explicit list of experiments. A module that is not listed here does not exist for the tool."""

from __future__ import annotations

from typing import Protocol

from forensics.replay.child.bench import Bench
from forensics.replay.experiments import (
    batch_elsewhere,
    clipping,
    components,
    curvature,
    determinism,
    faithful,
    learning_rate,
    loss_scale,
    optimizer_state,
    order,
    other_batches,
    other_device,
    precision,
    samples,
    state_audit,
)
from forensics.replay.wire import Outcome


class Experiment(Protocol):
    """The shape of a module in this folder."""

    ID: str
    WHAT: str

    def run(self, bench: Bench) -> Outcome:
        """Do it."""


EXPERIMENTS: tuple[Experiment, ...] = (
    determinism,
    faithful,
    state_audit,
    samples,
    batch_elsewhere,
    other_batches,
    precision,
    learning_rate,
    clipping,
    optimizer_state,
    other_device,
    loss_scale,
    components,
    curvature,
    order,
)
"""Every experiment; the first three are always done, the others where the event came back."""

BY_ID = {e.ID: e for e in EXPERIMENTS}
