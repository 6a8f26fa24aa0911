"""The case in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forensics.correlate.checkpoint_evidence import CheckpointEvidence
from forensics.model import Absent, Event, EventKind, Run, Severity
from forensics.model.words import number
from forensics.vocabulary import Role

_WHAT = {
    EventKind.SPIKE: "the loss spiked",
    EventKind.SLOW_SPIKE: "the loss spiked and took long to come back",
    EventKind.LEVEL_SHIFT: "the loss moved to a higher level and stayed",
    EventKind.DROP: "the loss dropped",
    EventKind.DIVERGENCE: "the loss diverged",
    EventKind.DRIFT: "the loss began to drift up",
    EventKind.NON_FINITE: "a value became NaN or infinite",
    EventKind.OSCILLATION: "the loss began to swing",
    EventKind.NOISE_CHANGE: "the loss became noisier",
    EventKind.PLATEAU: "the loss stopped falling",
    EventKind.PERIODIC: "the loss became periodic",
    EventKind.OVERFITTING: "the held-out loss began to rise",
    EventKind.RESTART: "the run or its data started again",
    EventKind.LOSS_SCALE_DROP: "the loss scale fell in a burst",
    EventKind.LOSS_SCALE_COLLAPSE: "the loss scale collapsed",
    EventKind.GRAD_NORM_SURGE: "the gradient norm surged",
    EventKind.LR_ANOMALY: "the learning rate did something unplanned",
    EventKind.BATCH_SIZE_CHANGE: "the batch size changed",
    EventKind.LOGIT_GROWTH: "attention logits grew out of range",
    EventKind.THROUGHPUT_CHANGE: "the throughput changed",
    EventKind.UNFINISHED: "the log ends unfinished",
}

NAMES = ("Adam", "Python", "Nesterov")
"""First words of titles that keep their capital within a sentence."""

_GRAVITY = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


def verdict(run: Run, events: Sequence[Event]) -> str:
    """One sentence for a tired reader: what happened first and worst, and the best explanation, or that there is none."""
    alarms = [e for e in events if e.severity is not Severity.INFO]
    if not alarms:
        return _quiet(run) + _rotten(run, ())
    worst = min(alarms, key=lambda e: (_GRAVITY[e.severity], e.onset_step))
    sentence = f"At step {worst.onset_step:,} {_what(run, worst)}"
    if worst.hypotheses and not worst.undetermined:
        best = worst.hypotheses[0]
        itself = worst.kind is EventKind.LR_ANOMALY and best.cause == "lr_rewarm_or_jump"
        if itself:  # saying it twice explains nothing
            sentence += f"; whatever sets it is at fault ({best.cause}, {best.score:.0%})"
        else:
            sentence += f"; best explanation: {_lower(best.title)} ({best.cause}, {best.score:.0%})"
    elif worst.hypotheses:
        names = " or ".join(f"{_lower(h.title)} ({h.cause}, {h.score:.0%})" for h in worst.hypotheses[:2])
        fit = "fits" if len(worst.hypotheses) == 1 else "fit"
        sentence += f"; the cause is undetermined from the logs alone: {names} {fit} best"
    else:
        sentence += "; no cause in the catalogue fits"
    others = len(alarms) - 1
    if others:
        sentence += f"; {others} more event{'s' if others > 1 else ''}"
    return sentence + "." + _rotten(run, alarms)


def _what(run: Run, event: Event) -> str:
    loss = run.signal(Role.LOSS)
    if event.kind is EventKind.NON_FINITE:
        word = "the loss" if not isinstance(loss, Absent) and loss.name == event.signal else event.signal
        return f"{word} became NaN or infinite" + ("" if event.recovered else " and stayed so")
    if event.kind is EventKind.RESTART:
        return "steps were written a second time" if "written twice" in event.text else _WHAT[event.kind]
    if event.kind is EventKind.LR_ANOMALY and event.baseline is not None and event.peak is not None:
        return f"the learning rate {'jumped' if event.peak > event.baseline else 'fell'} from {event.baseline:.3g} to {event.peak:.3g}"
    return _WHAT[event.kind] + _sizes(event)


_SIZED = frozenset(
    {
        *(EventKind.SPIKE, EventKind.SLOW_SPIKE, EventKind.LEVEL_SHIFT, EventKind.DROP, EventKind.DIVERGENCE, EventKind.DRIFT),
        *(EventKind.LOSS_SCALE_DROP, EventKind.LOSS_SCALE_COLLAPSE, EventKind.GRAD_NORM_SURGE, EventKind.BATCH_SIZE_CHANGE, EventKind.LOGIT_GROWTH),
    }
)
"""Kinds whose size is a step from one value to another."""


def _sizes(event: Event) -> str:
    """From which value to which, where that says how bad it is."""
    if event.kind not in _SIZED or event.baseline is None or event.peak is None or not math.isfinite(event.baseline + event.peak):
        return ""
    return f" ({number(event.baseline, 4)} to {number(event.peak, 4)})"


def _quiet(run: Run) -> str:
    loss = run.signal(Role.LOSS)
    points = sum(len(s) for s in run.signals)
    if isinstance(loss, Absent):
        return f"Nothing unusual in the {points:,} points that were read, but no loss is logged: this says little about the training."
    curve = loss.curve()
    span = f"steps {int(curve.steps[0]):,} to {int(curve.steps[-1]):,}" if len(curve) else "no steps"
    if run.damage:
        return f"Nothing unusual in what could be read ({span}), but part of the input is damaged: see what was lost before calling this run healthy."
    return f"Nothing unusual found in {span} ({points:,} points read)."


def _lower(title: str) -> str:
    first = title.split(" ", 1)[0]
    ordinary = (first[1:].islower() or len(first) == 1) and not first.startswith(NAMES)
    return title[:1].lower() + title[1:] if ordinary else title


def _rotten(run: Run, alarms: Sequence[Event]) -> str:
    """A sentence on the first checkpoint with a fault that no event explains; nothing where there is none."""
    saved = sorted((c for c in run.checkpoints if c.step is not None), key=lambda c: c.step or 0)
    still = CheckpointEvidence(saved, saved[-1].step or 0).still() if saved else None
    if still is not None and still.names and not alarms:
        return f" But in the checkpoints {still.fact.text}: the optimizer does not step them."
    bad = next((c for c in saved if c.faults), None)
    if bad is None or bad.step is None:
        return ""
    sound = next((c for c in reversed(saved) if c.good and (c.step or 0) < (bad.step or 0)), None)
    since = -1 if sound is None or sound.step is None else sound.step
    if any(since <= e.onset_step <= bad.step for e in alarms):
        return ""
    last = "no earlier one is sound" if sound is None else f"the last sound one is that of step {sound.step:,}"
    return f" But the checkpoint of step {bad.step:,} is damaged, and the log shows nothing of it: {bad.faults[0].text}; {last}."
