"""Reinforcement-learning runs with one thing wrong."""

from __future__ import annotations

import numpy as np
from cause_runs import AT, Story

from forensics.model import FloatArray


class RlStory(Story):
    """A healthy run that also logs reward, KL, entropy, value loss and the length of responses."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(11)
        self.more |= {
            "reward": 0.5 + 0.02 * self.rng.normal(size=self.points),
            "kl": 0.02 * self.wiggle(0.1),
            "entropy": 2.0 * self.wiggle(0.03),
            "value_loss": 0.3 * self.wiggle(0.05),
            "response_length": 200 * self.wiggle(0.02),
        }

    def wiggle(self, sd: float) -> FloatArray:
        """Noise as a factor."""
        return np.exp(sd * self.rng.normal(size=self.points))

    def grow(self, factor: float, over: int = 500) -> FloatArray:
        """A factor that grows to a size until the event and stays there."""
        return np.asarray(factor ** (np.clip(np.arange(self.points) - (AT - over), 0, over) / over))

    def crash(self) -> None:
        """The reward falls at the event."""
        self.more["reward"] = self.more["reward"] * self.step_to(0.4)
