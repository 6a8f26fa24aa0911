"""Info events: only rules that answer their kind are asked, few of a kind, and alarms stay what they were."""

from __future__ import annotations

import numpy as np

from forensics.causes.catalogue import RULES
from forensics.model import Attempt, EventKind, Run, Severity, Signal, SourceInfo, Span
from forensics.pipeline import MOST_INFO, build_case
from forensics.vocabulary import assign_roles

POINTS = 1200


def run(**values: np.ndarray) -> Run:
    steps = np.arange(POINTS, dtype=np.int64)
    signals = [Signal(name, steps, series, spans=(Span(0, 0, POINTS),)) for name, series in values.items()]
    return Run("run", "run", (SourceInfo("log.csv", "csv", POINTS * len(signals)),), assign_roles(signals), (), {})


def healthy(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = np.arange(POINTS)
    return {"loss": (2 + 2 * (1 + t / 50) ** -0.5) * np.exp(0.02 * rng.normal(size=POINTS)), "grad_norm": 0.5 * np.exp(0.1 * rng.normal(size=POINTS))}


def test_an_event_that_no_rule_answers_has_no_hypothesis_and_is_not_undetermined() -> None:
    values = healthy()
    values["grad_norm"][600] *= 6
    case = build_case(run(**values))
    assert [(e.kind, e.severity) for e in case.events] == [(EventKind.GRAD_NORM_SURGE, Severity.INFO)]
    assert case.events[0].hypotheses == ()
    assert not case.events[0].undetermined
    assert case.rejected == ()


def test_few_events_of_a_kind_are_explained() -> None:
    values = healthy()
    length = np.full(POINTS, 512.0)
    at = np.arange(200, 1100, 60)
    values["step_time"] = 0.5 * np.exp(0.01 * np.random.default_rng(1).normal(size=POINTS))
    values["grad_norm"][at] *= 6
    length[at] = 4096
    case = build_case(run(**values, seq_len=length))
    surges = [e for e in case.events if e.kind is EventKind.GRAD_NORM_SURGE]
    assert len(surges) > MOST_INFO
    assert all(e.severity is Severity.INFO for e in surges)


def test_gradients_that_grow_in_the_tail_are_explained() -> None:
    values = healthy()
    t = np.arange(POINTS)
    lr = 1e-3 * np.where(t < 400, 1.0, np.where(t < 800, 0.1, 0.01))
    values["grad_norm"] *= np.sqrt(1e-3 / lr)
    case = build_case(run(**values, lr=lr))
    assert all(e.severity is Severity.INFO for e in case.events)
    explained = [e for e in case.events if e.hypotheses]
    assert explained
    assert explained[0].hypotheses[0].cause == "tail_grad_growth"
    assert not explained[0].undetermined
    assert case.verdict.startswith("Nothing unusual")


def test_a_slowdown_names_a_slow_rank() -> None:
    values = healthy()
    rng = np.random.default_rng(2)
    slow = np.where(np.arange(POINTS) >= 700, 1.2, 1.0)
    values["step_time"] = slow * np.exp(0.01 * rng.normal(size=POINTS))
    for rank in range(4):
        values[f"rank{rank}_time"] = (slow if rank == 2 else np.ones(POINTS)) * np.exp(0.01 * rng.normal(size=POINTS))
    case = build_case(run(**values))
    (event,) = [e for e in case.events if e.kind is EventKind.THROUGHPUT_CHANGE]
    assert event.hypotheses[0].cause == "straggler_throttle"
    assert not event.undetermined


def test_a_clean_resume_says_what_was_continuous_and_what_was_changed() -> None:
    values = healthy()
    values["lr"] = np.full(POINTS, 1e-3)
    steps = np.arange(POINTS, dtype=np.int64)
    signals = assign_roles([Signal(n, steps, v, spans=(Span(0, 0, POINTS),), starts=(0, 600)) for n, v in values.items()])
    attempts = (Attempt(0, 599), Attempt(600, POINTS - 1, 599))
    configs: tuple[dict[str, object], ...] = ({"clip": 1.0, "name": "a"}, {"clip": 0.5, "name": "b"})
    case = build_case(Run("run", "run", (SourceInfo("log.csv", "csv", 1),), signals, attempts, {}, attempt_configs=configs))
    (event,) = [e for e in case.events if e.kind is EventKind.RESTART]
    assert event.severity is Severity.INFO
    assert "the learning rate went on at 0.001" in event.text
    assert "the first loss was right" in event.text
    assert event.text.endswith("settings changed: clip from 1.0 to 0.5")


def test_rules_answer_kinds_that_exist() -> None:
    answered = {kind for rule in RULES for kind in rule.INFO.info}
    assert {EventKind.THROUGHPUT_CHANGE, EventKind.UNFINISHED, EventKind.GRAD_NORM_SURGE, EventKind.LOSS_SCALE_DROP} <= answered
    assert EventKind.OVERFITTING not in answered
