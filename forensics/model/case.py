"""The case: what happened in a run, why, and what was not checked. This is the JSON contract ``forensics/1``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from forensics.model.damage import Damage
from forensics.model.run import Attempt, SourceInfo

SCHEMA = "forensics/1"


class Severity(StrEnum):
    """How much an event matters; healthy things stay info."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class EventKind(StrEnum):
    """The closed list of things that can happen to a run."""

    SPIKE = "spike"
    SLOW_SPIKE = "slow_spike"
    LEVEL_SHIFT = "level_shift"
    DROP = "drop"
    DIVERGENCE = "divergence"
    DRIFT = "drift"
    NON_FINITE = "non_finite"
    OSCILLATION = "oscillation"
    NOISE_CHANGE = "noise_change"
    PLATEAU = "plateau"
    PERIODIC = "periodic"
    OVERFITTING = "overfitting"
    RESTART = "restart"
    LOSS_SCALE_DROP = "loss_scale_drop"
    LOSS_SCALE_COLLAPSE = "loss_scale_collapse"
    GRAD_NORM_SURGE = "grad_norm_surge"
    LR_ANOMALY = "lr_anomaly"
    BATCH_SIZE_CHANGE = "batch_size_change"
    LOGIT_GROWTH = "logit_growth"
    THROUGHPUT_CHANGE = "throughput_change"
    UNFINISHED = "unfinished"


class Part(StrEnum):
    """What a cause did: started the event, made the run fragile, or made the event larger."""

    TRIGGER = "trigger"
    SUSCEPTIBILITY = "susceptibility"
    AMPLIFIER = "amplifier"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact with its number. ``source`` is ``path#record``; ``weight`` is its share of the score, in log-odds."""

    text: str
    signal: str | None = None
    step: int | None = None
    value: float | int | str | None = None
    source: str | None = None
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A ranked explanation. ``score`` in 0..1; ``replay`` names the experiment that would settle it."""

    cause: str
    title: str
    score: float
    role: Part
    supporting: tuple[Evidence, ...] = field(default=(), metadata={"json": "for"})
    against: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    remedy: str = ""
    replay: str = ""
    manual: str = ""


@dataclass(frozen=True, slots=True)
class Related:
    """Another signal that moved. ``lag`` is its onset minus the onset of the event's own signal, in steps; null = unknown."""

    signal: str
    role: str | None
    onset_step: int
    lag: int | None
    change: str


@dataclass(frozen=True, slots=True)
class BatchRef:
    """The batch that was trained on at a step. ``samples`` are the ids of its samples where they are known, the first of them."""

    step: int
    batch_id: int | float | str
    samples: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One incident. Steps are as logged; ``baseline``, ``peak`` and ``height`` are in the signal's unit.

    ``p_value`` is the chance that a healthy run of this length shows such a thing anywhere; null for facts that no noise makes.
    ``height_nats`` is the rise of the loss within the incident, ``area`` the loss above its level before times steps,
    ``recovery_steps`` from onset to end, ``lost_steps`` how far training was set back, all null where they mean nothing.
    """

    kind: EventKind
    severity: Severity
    confidence: float
    signal: str
    onset_step: int
    peak_step: int
    id: str = ""
    end_step: int | None = None
    recovered: bool = False
    baseline: float | None = None
    peak: float | None = None
    height: float | None = None
    p_value: float | None = None
    height_nats: float | None = None
    area: float | None = None
    recovery_steps: int | None = None
    lost_steps: float | None = None
    text: str = ""
    batches: tuple[BatchRef, ...] = ()
    related: tuple[Related, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    undetermined: bool = False
    replay: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A cause that was considered for an event and dropped, and why."""

    cause: str
    event: str
    why: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Something the analysis could not look at, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """How one logged name was read. ``every`` is the median distance between logged steps."""

    name: str
    role: str | None
    points: int
    first_step: int | None
    last_step: int | None
    every: float | None
    non_finite: int
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """Run-level numbers comparable across runs, shares of logged points but for ``lost_steps``; null where they cannot be computed."""

    loss_7sd_1000: float | None = None
    grad_norm_7sd_1000: float | None = None
    loss_6sd_128: float | None = None
    grad_norm_6sd_128: float | None = None
    skipped_share: float | None = None
    lost_steps: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint beside the logs. ``health`` is good, bad, or not read; ``faults`` say what is wrong with its numbers.

    ``optimizer_steps`` is the highest step count in the optimizer's own state.
    """

    path: str
    format: str
    step: int | None
    health: str
    optimizer_steps: int | None = None
    faults: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class LrPhase:
    """A stretch of the learning-rate schedule: warmup, peak, stable, decay, tail, rewarm or zero."""

    name: str
    first_step: int
    last_step: int


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run's header in the case. ``clip`` is the gradient-norm threshold, null where it is neither logged nor configured."""

    path: str
    name: str
    sources: tuple[SourceInfo, ...] = ()
    first_step: int | None = None
    last_step: int | None = None
    attempts: tuple[Attempt, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    stability_score: Stability = Stability()
    checkpoints: tuple[CheckpointInfo, ...] = ()
    lr_phases: tuple[LrPhase, ...] = ()
    clip: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A thinned curve for drawing: every extreme kept, whole around events. Lists of equal length."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """The finished analysis of one run. ``advice`` says in sentences what to do now."""

    tool_version: str
    run: RunInfo
    signals: tuple[SignalInfo, ...]
    verdict: str
    events: tuple[Event, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    damage: tuple[Damage, ...] = ()
    advice: tuple[str, ...] = ()
    schema: str = SCHEMA
