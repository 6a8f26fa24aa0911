"""Run-level numbers that can be compared across runs: the OLMo spike scores, the share of skipped steps, the steps lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.model import Absent, Event, Run, Severity, Stability
from forensics.vocabulary import Role

LONG_WINDOW, LONG_SD = 1000, 7.0
"""Published spike score: values seven standard deviations above the mean of the last thousand."""

SHORT_WINDOW, SHORT_SD = 128, 6.0
"""Published monitor: six standard deviations over the last 128."""


def stability(run: Run, events: Sequence[Event] = ()) -> Stability:
    """Scores of the primary loss and gradient norm, as shares of logged points; null where too little is logged.

    ``lost_steps`` is what the alarms among ``events`` cost together, counting once what they share.
    """
    return Stability(
        loss_7sd_1000=_score(run, Role.LOSS, LONG_WINDOW, LONG_SD),
        grad_norm_7sd_1000=_score(run, Role.GRAD_NORM, LONG_WINDOW, LONG_SD),
        loss_6sd_128=_score(run, Role.LOSS, SHORT_WINDOW, SHORT_SD),
        grad_norm_6sd_128=_score(run, Role.GRAD_NORM, SHORT_WINDOW, SHORT_SD),
        skipped_share=_skipped(run),
        lost_steps=_lost(events),
    )


def _score(run: Run, role: str, window: int, sds: float) -> float | None:
    signal = run.signal(role)
    if isinstance(signal, Absent):
        return None
    values = signal.curve().values
    values = values[np.isfinite(values)]
    if len(values) <= window:
        return None
    values = values / max(float(np.abs(values).max()), 1e-300)  # squares of huge losses are no numbers
    shifted = values - values.mean()
    total = np.concatenate([[0.0], np.cumsum(shifted)])
    squares = np.concatenate([[0.0], np.cumsum(shifted**2)])
    mean = (total[window:-1] - total[: -window - 1]) / window
    variance = np.maximum((squares[window:-1] - squares[: -window - 1]) / window - mean**2, 0.0)
    spikes = shifted[window:] > mean + sds * np.sqrt(variance)
    return float(spikes.mean())


def _lost(events: Sequence[Event]) -> float:
    total, reached = 0.0, float("-inf")
    for low, high in sorted((end - e.lost_steps, end) for e in events if e.lost_steps and e.severity is not Severity.INFO for end in (_end(e),)):
        total += max(0.0, high - max(low, reached))
        reached = max(reached, high)
    return total


def _end(event: Event) -> float:
    return float(event.end_step) if event.end_step is not None else event.onset_step + float(event.lost_steps or 0.0)


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
