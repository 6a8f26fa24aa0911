"""The causes without a rule: logs as they are usually written cannot decide them.

They are listed in the case as not visible in the run's logs, and have a manual page like every other cause.
"""

from __future__ import annotations

from forensics.causes.unseen import architecture, precision, resume
from forensics.causes.unseen.entry import Unseen

UNSEEN: tuple[Unseen, ...] = (
    *precision.TABLE,
    *architecture.TABLE,
    *resume.TABLE,
)
"""Every cause of the catalogue that has no rule module."""

__all__ = ["UNSEEN", "Unseen"]
