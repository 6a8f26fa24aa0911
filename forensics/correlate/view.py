"""What a cause may look at: one incident with everything measured around it."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from forensics.correlate.batches import Habit, Recurrence, habit, recurrence
from forensics.correlate.checkpoint_evidence import CheckpointEvidence
from forensics.correlate.clipping import Clipping
from forensics.correlate.differences import differences, software
from forensics.correlate.move import LEAD_POINTS, Move, measure
from forensics.correlate.patterns import Pattern, Thing, patterns
from forensics.correlate.profile import clipping_of
from forensics.correlate.resumes import CHECKED, Continuity, Mark, continuity
from forensics.correlate.schedule_check import Check, check_schedule
from forensics.correlate.settings import Settings, logged_setting, read_settings
from forensics.detectors.incidents import Incident
from forensics.model import Absent, Attempt, Event, EventKind, Evidence, Run, Severity, Signal
from forensics.model.comparison import Difference
from forensics.primitives.curves import Curves
from forensics.primitives.lr_schedule import LrJump, LrSchedule
from forensics.primitives.prepared import Prepared
from forensics.vocabulary import Role

RESUME_POINTS = 20
"""An event this many logged points after a restart is an event after a restart (catalogue: resume + 20)."""

GAP_FACTOR = 20.0
"""A pause this many usual steps long is a restart of the process (catalogue: wall-clock gap > 20 median step times)."""

RISES = (EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DRIFT, EventKind.DIVERGENCE)


_patterns: WeakKeyDictionary[Curves, dict[tuple[int, ...], tuple[Pattern, ...]]] = WeakKeyDictionary()
"""Patterns are those of the run; every event of it asks for them."""


class View:
    """One incident of a run. Everything is computed when first asked for."""

    def __init__(self, run: Run, curves: Curves, incident: Incident, incidents: tuple[Incident, ...] = ()) -> None:
        self.run = run
        self.curves = curves
        self.incident = incident
        self.event: Event = incident.event
        self.incidents = incidents

    @property
    def onset(self) -> int:
        """First step of the incident."""
        return self.event.onset_step

    @cached_property
    def settings(self) -> Settings:
        """Training settings as logged."""
        return read_settings(self.run.config)

    @cached_property
    def rise(self) -> Event | None:
        """The finding that the loss rose, if it did."""
        return self.incident.member(*RISES)

    @cached_property
    def anchor(self) -> int:
        """The step around which signals are measured: where the loss rose, else where the incident begins."""
        return self.rise.onset_step if self.rise is not None else self.onset

    @cached_property
    def loss(self) -> Move | None:
        """The loss around the event."""
        signal = self.curves.get(Role.LOSS)
        if signal is None or len(signal) == 0:
            return None
        return measure(signal, self.anchor, self.onset, self.rise.onset_step if self.rise is not None else None)

    @cached_property
    def grad(self) -> Move | None:
        """The gradient norm around the event; None where it is not logged or constant (printed, not computed)."""
        signal = self.curves.get(Role.GRAD_NORM)
        if signal is None or len(signal) == 0 or signal.values.min() == signal.values.max():
            return None
        return self.move(Role.GRAD_NORM)

    def move(self, role: str) -> Move | None:
        """Any signal around the event."""
        signal = self.curves.get(role)
        return None if signal is None or len(signal) == 0 else self.move_of(signal)

    def move_of(self, signal: Prepared) -> Move | None:
        """A prepared signal around the event."""
        return measure(signal, self.anchor, self.onset)

    @cached_property
    def grad_lead(self) -> int | None:
        """Logged steps by which the gradient norm left its level before the loss; None where that cannot be known.

        Cadence rule: a lead below the coarser logging interval is unknown.
        """
        if self.loss is None or self.grad is None or self.loss.onset_step is None or self.grad.onset_step is None:
            return None
        lead = self.loss.onset_step - self.grad.onset_step
        coarsest = max(self.loss.every, self.grad.every)
        return lead if coarsest <= 1 or abs(lead) > LEAD_POINTS else None

    @property
    def schedule(self) -> LrSchedule | None:
        """The learning-rate schedule, if logged."""
        return self.curves.schedule

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The logged schedule against the configured one."""
        return check_schedule(self.schedule, self.settings, self.every)

    @cached_property
    def clipping(self) -> Clipping:
        """What gradient clipping does in this run, after its warmup."""
        return clipping_of(self.curves, self.settings)

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """What the alarms of this run have in common; empty for fewer than three."""
        onsets = [i.event.onset_step for i in self.incidents if i.event.severity is not Severity.INFO]
        known = _patterns.setdefault(self.curves, {})
        key = tuple(onsets)
        if key not in known:
            known[key] = patterns(self.run, self.curves, onsets)
        return known[key]

    def pattern(self, thing: Thing) -> Pattern | None:
        """The surest pattern of this kind among the alarms of the run."""
        return next((p for p in self.patterns if p.thing is thing), None)

    @cached_property
    def jump(self) -> LrJump | None:
        """An upward change of the learning rate from shortly before the incident to its first steps."""
        if self.schedule is None:
            return None
        every = self.every
        reach = max(LEAD_POINTS * every, 0.04 * self.length)
        for jump in self.schedule.ups:
            end = int(self.schedule.steps[min(jump.index + jump.ramp - 1, len(self.schedule.steps) - 1)])
            if jump.step - 3 * every <= self.anchor and self.onset <= end + reach:
                return jump
        return None

    @cached_property
    def every(self) -> float:
        """Logging interval of the loss, or of the event's own signal."""
        loss = self.curves.get(Role.LOSS)
        if loss is not None:
            return loss.every
        roles = [s.role for s in self.run.signals if s.role]
        return next((p.every for p in self.curves.every(*roles) if p.name == self.event.signal), 1.0)

    @cached_property
    def length(self) -> int:
        """Steps from the first to the last logged one."""
        steps = [s.steps for s in self.run.signals if len(s)]
        return int(max(s.max() for s in steps) - min(s.min() for s in steps) + 1) if steps else 1

    @cached_property
    def first_step(self) -> int:
        """The first logged step of the loss, or of any signal."""
        signal = self.curves.get(Role.LOSS)
        if signal is not None and len(signal):
            return int(signal.steps[0])
        return min((int(s.steps.min()) for s in self.run.signals if len(s)), default=0)

    @cached_property
    def recurring(self) -> Recurrence | None:
        """The batch of this event at other alarms of the run."""
        others = tuple(i.event for i in self.incidents if i is not self.incident and i.event.severity is not Severity.INFO)
        return recurrence(self.run, self.event, others, self.incident.attempts)

    @cached_property
    def habit(self) -> Habit | None:
        """How the batch of the event does whenever else it comes."""
        loss = self.curves.get(Role.LOSS)
        return None if loss is None else habit(self.run, loss, self.anchor, self.incident.attempts)

    @cached_property
    def resume(self) -> Attempt | int | None:
        """A restart shortly before the event: the attempt that began there, or the step after a long pause."""
        reach = RESUME_POINTS * self.every
        for attempt in self.run.attempts[1:]:
            if attempt.first_step <= self.anchor <= attempt.first_step + reach or attempt.first_step == self.onset:
                return attempt
        return self._pause(reach)

    @cached_property
    def edits(self) -> tuple[Difference, ...] | None:
        """Settings that differ from the attempt before, where the event follows a restart; None where attempts log no settings."""
        if not isinstance(self.resume, Attempt) or self.resume not in self.run.attempts:
            return None
        number = self.run.attempts.index(self.resume)
        configs = self.run.attempt_configs
        if number == 0 or number >= len(configs) or not configs[number] or not configs[number - 1]:
            return None
        found, _ = differences(configs[number - 1], configs[number])
        return tuple(d for d in found if not d.bookkeeping or software(d.key))

    @cached_property
    def gap(self) -> tuple[int, int] | None:
        """Logged steps on either side of a stretch that is missing shortly before the event: a restart in it would not show."""
        signal = self.curves.get(Role.LOSS)
        if signal is None or len(signal) < 2:
            return None
        at = min(signal.at(self.anchor), len(signal) - 1)
        low = max(0, at - int(RESUME_POINTS))
        wide = np.flatnonzero(np.diff(signal.steps[low : at + 1]) > GAP_FACTOR * self.every)
        if len(wide) == 0:
            return None
        i = low + int(wide[-1])
        return int(signal.steps[i]), int(signal.steps[i + 1])

    @cached_property
    def restart(self) -> Continuity | None:
        """What was continuous across the restart before the event; without a mark of one, across the gap in which it may lie."""
        if isinstance(self.resume, Attempt):
            return self._continuity(self.resume.first_step, Mark.ATTEMPT)
        if self.resume is not None:
            return self._continuity(self.resume, Mark.PAUSE)
        return None if self.gap is None else self._continuity(self.gap[1], Mark.GAP)

    @cached_property
    def checkpoints(self) -> CheckpointEvidence:
        """The checkpoints beside the log, seen from this incident."""
        restart = self.restart if self.restart is not None and self.restart.mark is not Mark.GAP else None
        return CheckpointEvidence(self.run.checkpoints, self.anchor, None if restart is None else restart.step)

    def across(self, step: int) -> Continuity:
        """What was continuous across a step at which something began again."""
        return self._continuity(step, Mark.ATTEMPT)

    def _continuity(self, step: int, mark: Mark) -> Continuity:
        return continuity({role: self.curves.get(role) for role in CHECKED}, step, mark)

    def _pause(self, reach: float) -> int | None:
        signal = self.run.signal(Role.LOSS)
        if isinstance(signal, Absent) or signal.wall_times is None or len(signal) < 20:
            return None
        gaps = np.diff(signal.wall_times)
        usual = float(np.median(gaps))
        if usual <= 0:
            return None
        long = np.flatnonzero(gaps > max(GAP_FACTOR * usual, 5.0)) + 1
        steps = signal.steps[long]
        near = steps[(steps <= self.anchor) & (steps >= self.anchor - reach)]
        return int(near[-1]) if len(near) and len(long) <= 20 else None

    def evidence(self, text: str, role: str | None = None, step: int | None = None, value: float | str | None = None, weight: float = 0.0) -> Evidence:
        """A fact with its trace: the value of a signal at ``step`` unless another is given, and the record it came from.

        ``role`` is a role, whose primary signal is meant, or the logged name of a signal.
        """
        signal = None if role is None else self._logged(role)
        if signal is None:
            return Evidence(text, None, step, value, None, weight)
        at = self.anchor if step is None else step
        curve = signal.curve(self.incident.attempts)
        i = int(np.searchsorted(curve.steps, at, side="right")) - 1
        if i < 0:
            return Evidence(text, signal.name, at, value, None, weight)
        point = int(curve.index[i])
        number, record = signal.origin(point)
        source = f"{self.run.sources[number].path}#{record}" if 0 <= number < len(self.run.sources) else None
        shown = value if value is not None else float(curve.values[i])
        return Evidence(text, signal.name, int(curve.steps[i]), shown, source, weight)

    def configured(self, text: str, setting: str, weight: float = 0.0) -> Evidence:
        """A fact about a setting, with the key it is logged under and the file that holds it."""
        key, value = logged_setting(self.run.config, setting)
        held = next((s.path for s in self.run.sources if s.format == "config"), self.run.sources[0].path if self.run.sources else None)
        source = None if held is None or key is None else f"{held}#{key}"
        return Evidence(text, None, None, value if isinstance(value, (int, float, str)) else None, source, weight)

    def _logged(self, role: str) -> Signal | None:
        """The primary signal of a role, else the signal of this name."""
        signal = self.run.signal(role)
        return next((s for s in self.run.signals if s.name == role), None) if isinstance(signal, Absent) else signal
