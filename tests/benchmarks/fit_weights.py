"""Fit the evidence weights and priors of ``forensics/correlate/weights.py`` on labelled runs, and say whether that is worth it.

    python -m tests.benchmarks.fit_weights [LABELS.json ...] [--pull P] [--json OUT]

What is fitted are the named constants of the table and one prior per cause, never anything about a run. Every value is pulled
towards the one that stands in the table. What the fit is worth is measured on faults of kinds it has not seen: all runs of one
injected fault are left out in turn. Without arguments the sets of fixtures/ and those beside the checkout are used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from forensics.bench import TOLERANCE_POINTS, TOLERANCE_STEPS, Label, finds, read_labels
from forensics.causes.catalogue import RULES
from forensics.correlate import weights
from forensics.correlate.view import View
from forensics.detectors import find_incidents
from forensics.loading import load
from forensics.model import Severity
from forensics.primitives.curves import Curves
from tests.benchmarks.labels import SETS

NAMES = ("REQUIRED", "STRONG", "SUPPORT", "HINT", "AGAINST", "DOUBT", "UNKNOWN_CAUSE", "BASE", "FIRST", "SHARPNESS")
BY_VALUE = {getattr(weights, name): n for n, name in enumerate(NAMES[:6])}
UNKNOWN, BASE, FIRST, SHARP = 6, 7, 8, 9

PULL = 1.0
"""Strength with which a constant is held at its value: a deviation of 1 costs as much as half a nat of one fault."""

PULL_PRIOR = 3.0
"""The same for the prior of a cause, of which there are many and faults few."""

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause that stands for an event: how often each constant enters its log-odds, and what other numbers add."""

    cause: str
    counts: Array
    rest: float


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was found: the candidates of every event that belongs to it, and the causes that are right."""

    kind: str
    accept: frozenset[str]
    events: tuple[tuple[Candidate, ...], ...]


def collect(path: Path) -> list[Fault]:
    """The faults of a label file that are visible and found."""
    found = []
    for label in read_labels(path):
        if label.visible and not label.clean and label.first is not None and label.last is not None:
            events = _events(label, path.parent)
            if events:
                found.append(Fault(label.injected or label.event, frozenset(label.accept), events))
    return found


def _events(label: Label, root: Path) -> tuple[tuple[Candidate, ...], ...]:
    run = load(root / label.run)
    incidents = find_incidents(run).incidents
    curves: dict[int | None, Curves] = {}
    tolerance = max(TOLERANCE_STEPS, TOLERANCE_POINTS * label.every)
    out = []
    for incident in incidents:
        if incident.event.severity is Severity.INFO or not finds(incident.event, label.first or 0, label.last or 0, tolerance):
            continue
        view = View(run, curves.setdefault(incident.attempts, Curves(run, incident.attempts)), incident, incidents)
        out.append(_candidates(view))
    return tuple(out)


def _candidates(view: View) -> tuple[Candidate, ...]:
    standing = []
    for rule in RULES:
        found = rule.examine(view)  # type: ignore[attr-defined]
        if found.excluded is not None or not found.supporting:
            continue
        cause = rule.INFO.id  # type: ignore[attr-defined]
        counts, rest = np.zeros(len(NAMES)), 0.0
        for evidence in (*found.supporting, *found.against):
            if evidence.weight in BY_VALUE:
                counts[BY_VALUE[evidence.weight]] += 1
            else:
                rest += evidence.weight
        counts[BASE] = 1
        counts[FIRST] = float(cause in weights.LOOK_FIRST.get(view.event.kind, ()))
        standing.append(Candidate(cause, counts, rest))
    return tuple(standing)


class Model:
    """Scores under a vector of values: the constants of NAMES, then one prior per cause."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.causes = sorted({c.cause for f in faults for event in f.events for c in event})
        self.place = {cause: len(NAMES) + n for n, cause in enumerate(self.causes)}
        priors = [weights.PRIOR.get(cause, 0.0) for cause in self.causes]
        self.hand = np.array([getattr(weights, name) for name in NAMES] + priors)
        self.pull = np.array([PULL] * len(NAMES) + [PULL_PRIOR] * len(self.causes))

    def table(self, event: Sequence[Candidate]) -> Array:
        """How often every value enters the log-odds of the candidates, and of "none of them" (last row). Shape (candidates + 1, values)."""
        rows = np.zeros((len(event) + 1, len(self.hand)))
        for n, candidate in enumerate(event):
            rows[n, : len(NAMES)] = candidate.counts
            rows[n, self.place[candidate.cause]] = 1
        rows[-1, UNKNOWN] = 1
        return rows

    def scores(self, event: Sequence[Candidate], values: Array) -> Array:
        """Softmax over the candidates and the possibility that it was none of them (last)."""
        odds = self.table(event) @ _unsharp(values) + np.array([*(c.rest for c in event), 0.0])
        powers = np.exp(values[SHARP] * (odds - odds.max()))
        return np.asarray(powers / powers.sum())

    def prepare(self, faults: Sequence[Fault]) -> list[tuple[Array, Array, Array, float]]:
        """(table, rest, which rows are right, weight) of every event."""
        out = []
        for fault in faults:
            for event in fault.events:
                right = np.array([*(c.cause in fault.accept for c in event), False])
                if not right.any():
                    right[-1] = True
                rest = np.array([*(c.rest for c in event), 0.0])
                out.append((self.table(event), rest, right, 1.0 / len(fault.events) / len(faults)))
        return out

    def loss(self, faults: Sequence[Fault], values: Array) -> float:
        """Mean negative log score of right causes; where no right cause stands, of "none of them"."""
        return self.loss_and_slope(self.prepare(faults), values)[0]

    def loss_and_slope(self, prepared: Sequence[tuple[Array, Array, Array, float]], values: Array) -> tuple[float, Array]:
        """The loss and its gradient by the values."""
        total, slope = 0.0, np.zeros(len(values))
        plain, sharp = _unsharp(values), values[SHARP]
        for table, rest, right, weight in prepared:
            odds = table @ plain + rest
            powers = np.exp(sharp * (odds - odds.max()))
            scores = powers / powers.sum()
            share = max(float(scores[right].sum()), 1e-12)
            pulled = scores - np.where(right, scores, 0.0) / share
            total -= weight * np.log(share)
            slope += weight * sharp * (pulled @ table)
            slope[SHARP] += weight * float(pulled @ odds)
        return total, slope

    def fit(self, faults: Sequence[Fault], pull: float, free: Sequence[int]) -> Array:
        """Values of least loss, held at the hand-set ones; only those at the places ``free`` move."""
        places = np.array(free)

        def whole(some: Array) -> Array:
            values = self.hand.copy()
            values[places] = some
            return values

        prepared = self.prepare(faults)

        def cost(some: Array) -> tuple[float, Array]:
            away = some - self.hand[places]
            loss, slope = self.loss_and_slope(prepared, whole(some))
            held = pull * self.pull[places] / len(faults)
            return loss + 0.5 * float((held * away**2).sum()), slope[places] + held * away

        return whole(np.asarray(minimize(cost, self.hand[places], jac=True, method="L-BFGS-B").x))

    def first(self, fault: Fault, values: Array) -> tuple[str, float]:
        """The cause with the best score over all events of the fault, and its score."""
        best = [(float(s), c.cause) for event in fault.events for s, c in zip(self.scores(event, values), event, strict=False)]
        return max(best)[::-1] if best else ("", 0.0)

    def judge(self, faults: Sequence[Fault], values: Sequence[Array]) -> tuple[float, float, float]:
        """(loss, share of right first causes, Brier score), each fault under its own values."""
        firsts = [(self.first(f, v), f) for f, v in zip(faults, values, strict=True)]
        right = [cause in f.accept for (cause, _), f in firsts]
        brier = [(score - r) ** 2 for ((_, score), _), r in zip(firsts, right, strict=True)]
        loss = float(np.mean([self.loss([f], v) for f, v in zip(faults, values, strict=True)]))
        return loss, float(np.mean(right)), float(np.mean(brier))


def _unsharp(values: Array) -> Array:
    """The values as they enter the log-odds: sharpness multiplies all of them and is none of them."""
    plain = values.copy()
    plain[SHARP] = 0.0
    return plain


def main() -> int:
    """Fit, judge out of fold, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="*", type=Path)
    parser.add_argument("--pull", type=float, default=1.0, help="multiple of the usual pull towards the table")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    paths = args.labels or [p for folder in SETS if (p := folder / "labels.json").exists()]
    faults = [fault for path in paths for fault in collect(path)]
    if len({f.kind for f in faults}) < 2:
        sys.stdout.write("faults of at least two kinds are needed\n")
        return 1
    model = Model(faults)
    kinds = Counter(f.kind for f in faults)
    everything = range(len(model.hand))
    rows = {"as in the table": model.judge(faults, [model.hand] * len(faults))}
    for name, free in (("sharpness", [SHARP]), ("constants", range(SHARP)), ("constants and priors", [p for p in everything if p != SHARP])):
        unseen = {kind: model.fit([f for f in faults if f.kind != kind], args.pull, free) for kind in kinds}
        rows[f"{name}, kind left out"] = model.judge(faults, [unseen[f.kind] for f in faults])
    sys.stdout.write(f"{len(faults)} faults of {len(kinds)} kinds from {len(paths)} sets\n{'fitted':36} {'loss':>6} {'top-1':>6} {'Brier':>6}\n")
    sys.stdout.writelines(f"{name:36} {loss:6.3f} {top:6.3f} {brier:6.3f}\n" for name, (loss, top, brier) in rows.items())
    fitted = {"sharpness": model.fit(faults, args.pull, [SHARP]), "all": model.fit(faults, args.pull, [p for p in everything if p != SHARP])}
    names = [*NAMES, *model.causes]
    sys.stdout.write(f"sharpness alone: {fitted['sharpness'][SHARP]:.2f}; constants and priors, where they differ from the table by 0.1 or more:\n")
    moved = [(n, h, f) for n, h, f in zip(names, model.hand, fitted["all"], strict=True) if abs(f - h) >= 0.1]
    sys.stdout.writelines(f"  {name:28} {was:6.2f} -> {now:6.2f}\n" for name, was, now in moved)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "fitted": {k: dict(zip(names, v.tolist(), strict=True)) for k, v in fitted.items()}}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
