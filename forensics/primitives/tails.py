"""How surprising one outlier is, given the tail this signal itself shows."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import stdtr, stdtrit

from forensics.model import FloatArray

FEW = 200
"""Below this many points the tail cannot be measured; a moderately heavy one is assumed."""

ASSUMED_DF = 8.0
"""Degrees of freedom assumed for short signals: log losses of small batches look like this."""

LOW, HIGH = 0.85, 0.98
"""Quantiles whose ratio measures the tail: inside the 2 % that events may occupy, outside the core."""

_DF_GRID = np.array([1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 1e6])


@cache
def _ratios() -> tuple[float, ...]:
    return tuple(float(stdtrit(df, HIGH) / stdtrit(df, LOW)) for df in _DF_GRID)


class Tail:
    """Upper tail of standardised residuals, as Student's t: its degrees of freedom and scale by two quantiles."""

    def __init__(self, z: FloatArray, lightest: float = 0.0, ceiling: float = np.inf) -> None:
        """``lightest`` is a floor for the degrees of freedom: medians of several points cannot have heavy tails; ``ceiling`` the other bound."""
        usable = z[np.isfinite(z)]
        if len(usable) < FEW:
            self.df, self.scale = min(max(ASSUMED_DF, lightest), ceiling), 1.0
            return
        low, high = (float(q) for q in np.quantile(usable, [LOW, HIGH]))
        ratio = high / low if low > 0 else 10.0
        self.df = min(ceiling, max(lightest, float(np.interp(ratio, _ratios()[::-1], _DF_GRID[::-1]))))
        self.scale = max(low / float(stdtrit(self.df, LOW)), 0.5) if low > 0 else 1.0

    def p_value(self, z: float, trials: float) -> float:
        """Chance that the largest of ``trials`` healthy points reaches ``z``."""
        single = float(1.0 - stdtr(self.df, z / self.scale)) if z / self.scale < 30 else float(stdtr(self.df, -z / self.scale))
        return min(1.0, single * max(trials, 1.0))
