"""Whether a value lies far outside its own recent spread, in constant time per step."""

from __future__ import annotations

import math
from dataclasses import dataclass

WARMUP = 30
"""Values before anything is called an outlier: the spread must be known first."""
RATE = 0.05
"""Weight of the newest value in level and spread: a memory of about twenty steps."""
FAR = 8.0
"""Mean absolute deviations from the level. A false alarm costs a few batches on the disk, a missed one the evidence."""
FLOOR = 1e-3
"""Smallest spread, relative to the level: a constant series has none."""


@dataclass(slots=True)
class Spread:
    """A running level and mean absolute deviation. Outliers are counted with a bounded weight, so that they do not hide each other.

    Heavy-tailed positive series (gradient norms) are watched as logarithms.
    """

    logarithmic: bool = False
    count: int = 0
    level: float = 0.0
    deviation: float = 0.0

    def far(self, value: float) -> bool:
        """Take one value; True where it is not finite or far above the level."""
        if not math.isfinite(value):
            return True
        x = math.log(max(value, 1e-300)) if self.logarithmic else value
        if self.count == 0:
            self.count, self.level = 1, x
            return False
        size = max(self.deviation, FLOOR * (1.0 if self.logarithmic else abs(self.level)), 1e-12)
        off = x - self.level
        wrong = self.count >= WARMUP and off > FAR * size
        self.count += 1
        rate = max(RATE, 1.0 / self.count)
        bounded = max(-3 * size, min(3 * size, off)) if self.count > WARMUP else off
        self.level += rate * bounded
        self.deviation += rate * (abs(bounded) - self.deviation)
        return wrong
