"""The state of gradient clipping: off, chronic, ordinary, or not to be told because the log holds norms after clipping."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from forensics.model import FloatArray
from forensics.primitives.prepared import Prepared

AFTER = 1.001
"""A norm that never exceeds the threshold by more than rounding was logged after clipping."""

TOUCHES = 0.02
"""Share of points at the largest value from which it is a ceiling and not a maximum."""

FEWEST = 50
"""Fewer points make no share."""

CHRONIC, ALERT = 0.5, 0.05
"""Share of clipped steps from which the clip sets the step size, and from which it is worth knowing (published alert: 5 %)."""


class State(StrEnum):
    """What clipping does in this run."""

    OFF = "off"
    RARE = "rare"
    OFTEN = "often"
    CHRONIC = "chronic"
    AFTER_CLIP = "logged after clipping"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Clipping:
    """``threshold`` None: not configured and not visible; ``share`` of the logged norms at or above it, None where it cannot be told."""

    state: State
    threshold: float | None
    share: float | None

    @property
    def sentence(self) -> str:
        """The state for a person."""
        at = "" if self.threshold is None else f" at {self.threshold:g}"
        return {
            State.OFF: "clipping is off",
            State.RARE: f"clipped{at} in {self.share or 0:.1%} of the logged steps, as healthy runs are",
            State.OFTEN: f"clipped{at} in {self.share or 0:.0%} of the logged steps (healthy runs: 0.5 %)",
            State.CHRONIC: f"clipped{at} in {self.share or 0:.0%} of the logged steps: the clip sets the step size",
            State.AFTER_CLIP: f"the logged norm is the one after clipping{at}: how large gradients were is unknown",
            State.UNKNOWN: "neither a threshold nor enough gradient norms are logged",
        }[self.state]


def clipping(grad: Prepared | None, configured: float | None, *, configured_off: bool = False, skip: int = 0) -> Clipping:
    """The state over the logged points from position ``skip`` on (after the warmup, where that is known)."""
    values: FloatArray = grad.values[skip:] if grad is not None else np.empty(0)
    if configured_off:
        return Clipping(State.OFF, None, 0.0)
    if len(values) < FEWEST:
        return Clipping(State.UNKNOWN, configured, None)
    ceiling = _ceiling(values)
    if configured is None and ceiling is None:
        return Clipping(State.UNKNOWN, None, None)
    if ceiling is not None and (configured is None or ceiling <= AFTER * configured):
        return Clipping(State.AFTER_CLIP, configured if configured is not None else ceiling, None)
    if configured is None:
        return Clipping(State.UNKNOWN, None, None)
    share = float((values >= configured).mean())
    state = State.CHRONIC if share > CHRONIC else State.OFTEN if share > ALERT else State.RARE
    return Clipping(state, configured, share)


def _ceiling(values: FloatArray) -> float | None:
    """The value that many points reach and none exceeds; None where the largest stands alone."""
    top = float(values.max())
    at_top = int((values >= top / AFTER).sum())
    varied = len(np.unique(values[:: max(1, len(values) // 1000)])) > 5
    return top if top > 0 and varied and at_top >= max(5, TOUCHES * len(values)) else None
