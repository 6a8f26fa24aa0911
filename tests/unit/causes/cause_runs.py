"""Runs with one thing wrong, and what a rule says about it.

A Story is a healthy run as arrays, to be spoilt by the test; ``examine`` detects, picks the incident and asks the rule.
Signals are called like their roles.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from forensics.causes.interface import Examination
from forensics.correlate.view import View
from forensics.detectors import find_incidents
from forensics.model import Attempt, Evidence, FloatArray, Run, Severity, Signal, SourceInfo, Span
from forensics.primitives.curves import Curves
from forensics.vocabulary import assign_roles

AT = 900
"""The step at which stories go wrong."""

NEAR = 40
"""Steps from the place where a test looks to the incident it finds there."""


class Story:
    """A healthy run: a falling loss, an even gradient norm, warmup and cosine decay, one batch id per step."""

    def __init__(self, points: int = 1500, seed: int = 0, warmup: int = 100) -> None:
        rng = np.random.default_rng(seed)
        t = np.arange(points)
        self.points = points
        self.loss: FloatArray = (2.0 + np.exp(-t / 300)) * np.exp(0.02 * rng.normal(size=points))
        self.grad: FloatArray = 0.5 * np.exp(0.12 * rng.normal(size=points))
        decay = 0.55 + 0.45 * np.cos(np.pi * np.clip((t - warmup) / max(points - warmup, 1), 0, 1))
        self.lr: FloatArray = 3e-4 * np.minimum((t + 1) / max(warmup, 1), 1.0) * decay
        self.batch: FloatArray = t.astype(np.float64)
        self.more: dict[str, FloatArray] = {}
        self.config: dict[str, object] = {}
        self.attempts: tuple[Attempt, ...] = ()

    def run(self, *without: str) -> Run:
        """The run as logged, without the signals named."""
        named = {"loss": self.loss, "grad_norm": self.grad, "lr": self.lr, "batch_id": self.batch, **self.more}
        steps = np.arange(self.points, dtype=np.int64)
        starts = tuple(a.first_step for a in self.attempts) or (0,)
        signals = [Signal(name, steps, values, spans=(Span(0, 0, self.points),), starts=starts) for name, values in named.items() if name not in without]
        return Run("run", "run", (SourceInfo("log.csv", "csv", self.points * len(signals)),), assign_roles(signals), self.attempts, self.config)

    def resumed_at(self, step: int) -> None:
        """A second process continued the run."""
        self.attempts = (Attempt(0, step - 1), Attempt(step, self.points - 1, step - 1))

    def fade(self, height: float, length: float, at: int = AT) -> FloatArray:
        """A factor that jumps to 1 + height at a step and fades away over some steps."""
        away = np.arange(self.points) - at
        return 1.0 + np.where(away >= 0, height * np.exp(-np.maximum(away, 0) / length), 0.0)

    def step_to(self, factor: float, at: int = AT, until: int | None = None) -> FloatArray:
        """A factor from one step on (until another)."""
        t = np.arange(self.points)
        return np.where((t >= at) & (t < (self.points if until is None else until)), factor, 1.0)


def lr_jump(factor: float = 10.0) -> Story:
    """The learning rate is too large for 60 steps, and the loss takes off with it."""
    story = Story()
    story.lr = story.lr * story.step_to(factor, until=AT + 60)
    story.loss = story.loss * story.fade(0.8, 60, at=AT + 3)
    story.grad = story.grad * story.fade(4, 60, at=AT + 3)
    return story


def bad_batch(*steps: int) -> Story:
    """One-step spikes of loss and gradient, with the same batch id where there are several."""
    story = Story()
    at = list(steps or (AT,))
    story.loss[at] *= 2
    story.grad[at] *= 4
    if len(at) > 1:
        story.batch[at] = 7.0
    return story


def thrown_off(height: float = 0.7, surge: float = 4.0, length: float = 30, seed: int = 0) -> Story:
    """Loss and gradient jump together and come down over some steps."""
    story = Story(seed=seed)
    story.loss = story.loss * story.fade(height, length)
    story.grad = story.grad * story.fade(surge, length)
    return story


def explosion() -> Story:
    """The gradient norm doubles and more for five steps; the loss follows when it is at its height."""
    story = Story()
    story.grad[AT - 4 : AT + 2] *= [3, 9, 30, 100, 400, 50]
    story.loss = story.loss * story.fade(1.2, 15)
    return story


def new_data() -> Story:
    """The loss goes to a new level and stays; the gradient norm is soon calm."""
    story = Story()
    story.loss = story.loss * story.step_to(1.4)
    story.grad = story.grad * story.fade(1.5, 2)
    return story


def nan_loss(steps: int = 1) -> Story:
    """The loss is NaN for some steps, out of nothing."""
    story = Story()
    story.loss[AT : AT + steps] = np.nan
    return story


def grown_nan() -> Story:
    """The loss rises for 40 steps, then is NaN to the end."""
    story = Story()
    away = np.clip(np.arange(story.points) - (AT - 40), 0, None)
    story.loss = story.loss * np.exp(away / 25)
    story.grad = story.grad * np.exp(away / 10)
    story.loss[AT:] = np.nan
    story.grad[AT:] = np.nan
    return story


def falling_scale(halvings: int, *, recovers: bool) -> Story:
    """The loss scale falls in a burst; the gradients of those steps are infinite."""
    story = Story()
    scale = np.full(story.points, 65536.0)
    scale[AT : AT + halvings] = 65536.0 / 2.0 ** np.arange(1, halvings + 1)
    scale[AT + halvings :] = 65536.0 / 2.0**halvings
    if recovers:
        scale[AT + halvings + 30 :] = 65536.0
    story.more["loss_scale"] = scale
    story.grad[AT : AT + halvings] = np.inf
    return story


def noisier(grad: float = 1.8) -> Story:
    """From one step on the loss is noisier and the gradient norm larger."""
    story = Story()
    noise = 0.07 * np.random.default_rng(5).uniform(-1, 1, story.points)
    story.loss = story.loss * np.exp(np.where(np.arange(story.points) >= AT, noise, 0.0))
    story.grad = story.grad * story.step_to(grad)
    return story


def swinging() -> Story:
    """From one step on the loss swings with a period of 12 steps."""
    story = Story()
    t = np.arange(story.points)
    story.loss = story.loss * np.exp(np.where(t >= AT, 0.07 * np.sin(2 * np.pi * t / 12), 0.0))
    return story


def drifting(grad: float = 0.6) -> Story:
    """Loss and gradient norm creep up. The place where the drift is found is less exact."""
    story = Story()
    away = np.clip(np.arange(story.points) - AT, 0, None)
    story.loss = story.loss * np.exp(0.0002 * away)
    story.grad = story.grad * np.exp(grad * away / 600)
    return story


def early(warmup: int, at: int = 40) -> Story:
    """Loss and gradient take off in the first steps of a run."""
    story = Story(warmup=warmup)
    story.loss = story.loss * story.fade(1.0, 40, at=at)
    story.grad = story.grad * story.fade(6, 40, at=at)
    return story


def examine(rule: ModuleType, run: Run, near: int = AT, within: int = NEAR) -> Examination:
    """What the rule says about the incident next to a step; alarms come before what is only info."""
    incidents = find_incidents(run).incidents
    close = [i for i in incidents if abs(i.event.onset_step - near) <= within]
    assert close, f"no incident near step {near}: {[(i.event.kind.value, i.event.onset_step) for i in incidents]}"
    incident = min(close, key=lambda i: (i.event.severity is Severity.INFO, abs(i.event.onset_step - near)))
    found: Examination = rule.examine(View(run, Curves(run, incident.attempts), incident, incidents))
    return found


def signals(evidence: list[Evidence]) -> set[str]:
    """The signals that evidence points at."""
    return {e.signal for e in evidence if e.signal is not None}


def holds(found: Examination) -> bool:
    """The rule stands: it has evidence and more for it than against it."""
    return found.excluded is None and bool(found.supporting) and found.log_odds > 0


def silent(found: Examination) -> bool:
    """The rule says nothing for its cause, or rules it out."""
    return found.excluded is not None or not found.supporting
