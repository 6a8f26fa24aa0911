"""Attention logits leave the range in which a softmax is soft."""

from __future__ import annotations

import numpy as np

from forensics.model import Event, EventKind, Severity
from forensics.primitives.curves import Curves
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

NAME = "logit_growth"

WATCH = 50.0
"""Largest attention logit above which practice starts to watch (healthy runs stay below 30)."""

DANGER = 100.0
"""Largest logit at which published remedies act (QK-clip uses this threshold)."""

GROWTH = 1.5
"""A logit that grew by less than this factor did not grow."""


def detect(curves: Curves) -> list[Event]:
    """Growth of every logged attention logit past the danger line."""
    events = [_event(logits) for logits in curves.every(Role.ATTN_LOGIT_MAX) if len(logits) >= 10]
    return [event for event in events if event is not None]


def _event(logits: Prepared) -> Event | None:
    values = logits.values
    peak = int(np.argmax(values))
    start = float(np.median(values[: max(3, len(values) // 50)]))
    if values[peak] < WATCH or values[peak] < GROWTH * start:
        return None
    onset = int(np.argmax(values >= min(DANGER, max(WATCH, GROWTH * start))))
    top = float(values[peak])
    last = float(np.median(values[-10:]))
    return Event(
        kind=EventKind.LOGIT_GROWTH,
        severity=Severity.WARNING if top >= DANGER else Severity.INFO,
        confidence=0.9,
        signal=logits.name,
        onset_step=int(logits.steps[onset]),
        peak_step=int(logits.steps[peak]),
        end_step=int(logits.steps[-1]) if last < WATCH else None,
        recovered=last < WATCH,
        baseline=start,
        peak=top,
        height=top - start,
        text=f"{logits.name} grew from {start:.4g} to {top:.4g}",
    )
