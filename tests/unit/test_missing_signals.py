"""The same fault with less and less logged: the answer stays sensible and becomes less sure; what is missing is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.model import Case, Event, Run, Severity, Signal, SourceInfo, Span
from forensics.pipeline import build_case
from forensics.vocabulary import assign_roles

POINTS, AT = 1500, 900


def signals(every: int = 1) -> dict[str, np.ndarray]:
    """A learning rate that jumps by ten, and a loss and a gradient norm that follow it."""
    rng = np.random.default_rng(0)
    t = np.arange(POINTS)
    lr = 3e-4 * np.minimum((t + 1) / 100, 1) * (0.55 + 0.45 * np.cos(np.pi * t / POINTS))
    lr[AT : AT + 60] *= 10
    fade = np.where(t >= AT + 3, np.exp(-np.maximum(t - AT - 3, 0) / 60), 0.0)
    loss = (2 + np.exp(-t / 300)) * np.exp(0.02 * rng.normal(size=POINTS)) * (1 + 0.8 * fade)
    grad = 0.5 * np.exp(0.12 * rng.normal(size=POINTS)) * (1 + 6 * fade)
    return {name: values[::every] for name, values in {"loss": loss, "grad_norm": grad, "lr": lr}.items()}


def analysed(*names: str, every: int = 1) -> Case:
    steps = np.arange(0, POINTS, every, dtype=np.int64)
    chosen = [Signal(n, steps, v, spans=(Span(0, 0, len(steps)),)) for n, v in signals(every).items() if n in names]
    return build_case(Run("run", "run", (SourceInfo("log.csv", "csv", len(steps)),), assign_roles(chosen), (), {}))


def alarm(case: Case) -> Event:
    found = [e for e in case.events if e.severity is not Severity.INFO]
    assert len(found) == 1
    assert abs(found[0].onset_step - AT) <= 12
    return found[0]


def test_everything_logged_is_sure() -> None:
    event = alarm(analysed("loss", "grad_norm", "lr"))
    assert event.hypotheses[0].cause == "lr_rewarm_or_jump"
    assert event.hypotheses[0].score > 0.7


def test_without_a_learning_rate_it_is_not_blamed_for_sure() -> None:
    case = analysed("loss", "grad_norm")
    event = alarm(case)
    assert event.hypotheses
    assert event.hypotheses[0].score < 0.7
    assert event.hypotheses[0].cause != "lr_rewarm_or_jump"
    assert any(n.what == "lr" for n in case.not_checked)


def test_the_loss_alone() -> None:
    case = analysed("loss")
    event = alarm(case)
    assert event.undetermined or event.hypotheses[0].score < 0.6
    assert {"lr", "grad_norm"} <= {n.what for n in case.not_checked}


def test_the_gradient_norm_alone() -> None:
    case = analysed("grad_norm")
    assert any(n.what == "loss" for n in case.not_checked)
    assert all(e.signal == "grad_norm" for e in case.events)
    assert all(e.undetermined or e.hypotheses[0].score < 0.6 for e in case.events if e.severity is not Severity.INFO)


def test_the_learning_rate_alone_still_shows_its_jump() -> None:
    event = alarm(analysed("lr"))
    assert event.hypotheses[0].cause == "lr_rewarm_or_jump"


@pytest.mark.parametrize("names", [("loss", "grad_norm"), ("loss", "grad_norm", "lr")])
def test_at_a_coarse_cadence_short_leads_are_unknown(names: tuple[str, ...]) -> None:
    event = alarm(analysed(*names, every=10))
    grad = [r for r in event.related if r.signal == "grad_norm"]
    assert all(r.lag is None or abs(r.lag) > 10 for r in grad)
    texts = [e.text for h in event.hypotheses for e in (*h.supporting, *h.against)]
    assert not any("steps before the loss" in text for text in texts)


def test_104b_at_cadence_10_says_that_the_lead_is_unknown() -> None:
    """The last points of a public run at one line per ten steps, after a calm stretch at the same level."""
    rng = np.random.default_rng(3)
    calm = 60
    loss = np.concatenate([6.3 * np.exp(0.01 * rng.normal(size=calm)), [6.366, 6.598, 7.314, 9.122, 10.24]])
    grad = np.concatenate([21 * np.exp(0.1 * rng.normal(size=calm)), [23.3, 20.7, 30.0, 69.2, 10.3]])
    steps = 6900 - 10 * calm + 10 * np.arange(calm + 5, dtype=np.int64)
    chosen = [Signal(n, steps, v, spans=(Span(0, 0, len(steps)),)) for n, v in (("lm loss", loss), ("grad norm", grad))]
    case = build_case(Run("run", "run", (SourceInfo("log.txt", "console", len(steps)),), assign_roles(chosen), (), {}))
    event = next(e for e in case.events if e.severity is not Severity.INFO)
    assert 6900 <= event.onset_step <= 6930
    assert all(r.lag is None for r in event.related if r.signal == "grad norm")
    assert any("every 10 steps" in n.why for n in case.not_checked)
    texts = [e.text for h in event.hypotheses for e in (*h.supporting, *h.against)]
    assert not any("before the loss" in text for text in texts)
