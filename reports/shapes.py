"""The shapes of the view: plain frozen data that every report shows as it is. Text in them is already safe to show."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.model import Series
from forensics.reports.redaction import Setting


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """One fact: its sentence, where it can be looked up, and the chart and step that show it."""

    text: str
    place: str
    signal: str = ""
    step: int | None = None
    value: str = ""
    source: str = ""
    chart: int | None = None


@dataclass(frozen=True, slots=True)
class HypothesisView:
    """One explanation. ``score`` in 0..1."""

    cause: str
    title: str
    score: float
    role: str
    supporting: tuple[EvidenceView, ...]
    against: tuple[EvidenceView, ...]
    missing: tuple[str, ...]
    remedy: str
    replay: str
    manual: str


@dataclass(frozen=True, slots=True)
class RelatedView:
    """Another signal that moved, and when."""

    signal: str
    role: str
    onset_step: int
    lag: str
    change: str
    chart: int | None


@dataclass(frozen=True, slots=True)
class ReplayCurve:
    """A signal as logged and as replayed."""

    signal: str
    logged: Series
    replayed: Series


@dataclass(frozen=True, slots=True)
class SampleBar:
    """The loss of one sample; ``share`` of the largest in its batch, 0..1."""

    label: str
    loss: str
    share: float
    stands_out: bool


@dataclass(frozen=True, slots=True)
class LayerCell:
    """A tensor's gradient at the bad step; ``level`` 0..1 on a log scale, 0.5 the median."""

    tensor: str
    text: str
    level: float
    bad: bool


@dataclass(frozen=True, slots=True)
class ReplayView:
    """What a replay of the event found. ``experiments`` rows: id, what, whether the event came, reading."""

    verdict: str
    reproduced: str
    why: str = ""
    cause: str = ""
    culprits: tuple[tuple[str, str], ...] = ()
    calm_with: tuple[str, ...] = ()
    experiments: tuple[tuple[str, str, str, str], ...] = ()
    curves: tuple[ReplayCurve, ...] = ()
    samples: tuple[SampleBar, ...] = ()
    sample_step: int | None = None
    layers: tuple[LayerCell, ...] = ()
    layer_step: int | None = None
    first_bad: str = ""
    tokens: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventView:
    """One incident. ``last_step`` is its end, or the end of the run where it lasts."""

    id: str
    kind: str
    severity: str
    confidence: float
    signal: str
    headline: str
    text: str
    when: str
    onset_step: int
    peak_step: int
    end_step: int | None
    last_step: int
    outcome: str
    change: str
    numbers: tuple[tuple[str, str], ...]
    batches: tuple[tuple[int, str], ...]
    more_batches: int
    related: tuple[RelatedView, ...]
    hypotheses: tuple[HypothesisView, ...]
    undetermined: bool
    replay: ReplayView | None
    replay_command: str
    chart: int | None

    @property
    def best(self) -> HypothesisView | None:
        """The explanation to show first; none where nothing is likely enough to name."""
        return None if self.undetermined or not self.hypotheses else self.hypotheses[0]


@dataclass(frozen=True, slots=True)
class ChartView:
    """One drawn signal. ``bands`` are (first step, last step, name) of shaded stretches; ``level`` a line across; ``falls`` marked steps."""

    index: int
    signal: str
    role: str
    series: Series
    bands: tuple[tuple[int, int, str], ...] = ()
    level: float | None = None
    level_name: str = ""
    falls: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SignalView:
    """How one logged name was read."""

    name: str
    role: str
    points: int
    steps: str
    every: str
    non_finite: int
    primary: bool


@dataclass(frozen=True, slots=True)
class CaseView:
    """The whole case, ready to show. Pairs are (label, text)."""

    verdict: str
    name: str
    path: str
    tool_version: str
    span: str
    first_step: int
    last_step: int
    severity: str
    events: tuple[EventView, ...]
    charts: tuple[ChartView, ...]
    undrawn: int
    coverage: str
    signals: tuple[SignalView, ...]
    rejected: tuple[tuple[str, str, str], ...]
    not_checked: tuple[tuple[str, str], ...]
    damage: tuple[tuple[str, str, str], ...]
    config: tuple[Setting, ...]
    notes: tuple[Setting, ...]
    stability: tuple[tuple[str, str], ...]
    attempts: tuple[tuple[int, int, int | None], ...]
    sources: tuple[tuple[str, str, int, str], ...]
    advice: tuple[str, ...] = ()

    def of(self, *severities: str) -> tuple[EventView, ...]:
        """The events of the given severities, in order."""
        return tuple(e for e in self.events if e.severity in severities)
