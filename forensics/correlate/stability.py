"""Run-level numbers that can be compared across runs: the OLMo spike scores and the share of skipped steps."""

from __future__ import annotations

import numpy as np

from forensics.model import Absent, Run, Stability
from forensics.vocabulary import Role

LONG_WINDOW, LONG_SD = 1000, 7.0
"""Published spike score: values seven standard deviations above the mean of the last thousand."""

SHORT_WINDOW, SHORT_SD = 128, 6.0
"""Published monitor: six standard deviations over the last 128."""


def stability(run: Run) -> Stability:
    """Scores of the primary loss and gradient norm, as shares of logged points; null where too little is logged."""
    return Stability(
        loss_7sd_1000=_score(run, Role.LOSS, LONG_WINDOW, LONG_SD),
        grad_norm_7sd_1000=_score(run, Role.GRAD_NORM, LONG_WINDOW, LONG_SD),
        loss_6sd_128=_score(run, Role.LOSS, SHORT_WINDOW, SHORT_SD),
        grad_norm_6sd_128=_score(run, Role.GRAD_NORM, SHORT_WINDOW, SHORT_SD),
        skipped_share=_skipped(run),
    )


def _score(run: Run, role: str, window: int, sds: float) -> float | None:
    signal = run.signal(role)
    if isinstance(signal, Absent):
        return None
    values = signal.curve().values
    values = values[np.isfinite(values)]
    if len(values) <= window:
        return None
    shifted = values - values.mean()
    total = np.concatenate([[0.0], np.cumsum(shifted)])
    squares = np.concatenate([[0.0], np.cumsum(shifted**2)])
    mean = (total[window:-1] - total[: -window - 1]) / window
    variance = np.maximum((squares[window:-1] - squares[: -window - 1]) / window - mean**2, 0.0)
    spikes = shifted[window:] > mean + sds * np.sqrt(variance)
    return float(spikes.mean())


def _skipped(run: Run) -> float | None:
    """Share of skipped steps: from a logged counter, else from falls of the loss scale."""
    counter = run.signal(Role.SKIPPED)
    if not isinstance(counter, Absent):
        values = counter.curve().values
        values = values[np.isfinite(values)]
        if len(values):
            cumulative = len(values) > 2 and bool((np.diff(values) >= 0).all()) and values[-1] > 1
            return float(values[-1] / len(values) if cumulative else np.minimum(values, 1).mean())
    scale = run.signal(Role.LOSS_SCALE)
    if isinstance(scale, Absent):
        return None
    values = scale.curve().values
    return float((values[1:] < values[:-1]).mean()) if len(values) > 1 else None
