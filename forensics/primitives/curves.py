"""All signals of a run as they stood after a number of attempts, prepared once and shared by detection and correlation."""

from __future__ import annotations

from functools import cached_property

from forensics.model import Absent, Run, Signal
from forensics.primitives.lr_schedule import LrSchedule, read_schedule
from forensics.primitives.prepared import Prepared, prepare
from forensics.vocabulary import Role

SCALED = frozenset({Role.GRAD_NORM, Role.GRAD_NORM_GROUP})
"""Roles that some float16 trainers log before unscaling."""


class Curves:
    """Prepared signals by role. ``attempts`` None means the run as it ended."""

    def __init__(self, run: Run, attempts: int | None = None) -> None:
        self.run = run
        self.attempts = attempts
        self._prepared: dict[str, Prepared] = {}

    def get(self, role: str) -> Prepared | None:
        """The primary signal of a role, prepared; None where the role is not logged."""
        signal = self.run.signal(role)
        if isinstance(signal, Absent):
            return None
        return self._prepare(signal)

    def _prepare(self, signal: Signal) -> Prepared:
        if signal.name not in self._prepared:
            scale = self.run.signal(Role.LOSS_SCALE) if signal.role in SCALED else Absent("", "")
            self._prepared[signal.name] = prepare(signal, self.attempts, None if isinstance(scale, Absent) else scale)
        return self._prepared[signal.name]

    def every(self, *roles: str) -> tuple[Prepared, ...]:
        """Every signal of the given roles, prepared, primaries first."""
        return tuple(self._prepare(signal) for role in roles for signal in self.run.all(role))

    @cached_property
    def schedule(self) -> LrSchedule | None:
        """The learning-rate schedule, if a learning rate is logged."""
        signal = self.run.signal(Role.LR)
        return None if isinstance(signal, Absent) else read_schedule(signal, self.attempts)

    @cached_property
    def last_step(self) -> int:
        """The last logged step of any signal; 0 for an empty run."""
        return max((int(s.steps.max()) for s in self.run.signals if len(s)), default=0)
