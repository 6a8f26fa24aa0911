"""Where the penalty of ``forensics.changepoints`` comes from: false changes and found changes over a grid of prices.

    python -m tests.benchmarks.changepoints_study [--runs N] [--seed S]

Every price is tried on the same simulated series. The rule for the choice: of the prices at which at most 5 % of the series
without a change get one (7 % at any one length), take the one that finds most in the series with changes (F1 with margin 5
plus cover, as in the Turing change point data set). Then the same prices on that data set, where it lies beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from forensics.primitives import changepoints as method
from tests.benchmarks._simulated_series import CHANGED, NULLS, Array, series_with, series_without

LENGTHS = (30, 60, 120, 250, 500, 900)
"""Lengths of the simulated series, in turn."""

ALLOWED = 0.05
"""Share of series without a change that may get one."""

AT_ANY_LENGTH = 0.07
"""The same at the worst length: one standard error more, with 120 series of each length."""

PRICES = (
    *((0.0, 1.0), (0.0, 1.5), (0.0, 2.0), (2.0, 1.0)),
    *((4.0, 0.5), (4.0, 0.75), (4.0, 1.0), (5.0, 0.5), (5.0, 0.75)),
    *((6.0, 0.25), (6.0, 0.5), (6.0, 0.75), (8.0, 0.0), (8.0, 0.25), (10.0, 0.0)),
)
"""Penalty and penalty per log length that are tried."""

TCPD = Path(__file__).parents[3] / "shared" / "tcpd"

MARGIN = 5
"""Points that a change may be off."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One series with every explanation of it. ``marks`` are the sets of true changes: none, one, or one per annotator."""

    kind: str
    points: int
    marks: tuple[frozenset[int], ...]
    choices: tuple[method.Explanation, ...]

    def found(self, price: tuple[float, float]) -> tuple[int, ...]:
        """The changes at a price."""
        return method.cheapest(self.choices, price[0] + price[1] * float(np.log(self.points))).changes


def trial(kind: str, y: Array, marks: tuple[frozenset[int], ...]) -> Trial:
    """Explain a series."""
    usable = method.usable(y)
    choices = method.explanations(usable) if usable is not None else [method.Explanation("level", (), 1, 0.0)]
    return Trial(kind, len(y), marks, tuple(choices))


def f1(item: Trial, found: tuple[int, ...]) -> float:
    """F1 with index 0 as a change of every series; recall averaged over the annotators."""
    mine = {0, *found}
    marks = [{0, *m} for m in item.marks] or [{0}]
    precision = _matched(set().union(*marks), mine) / len(mine)
    recall = float(np.mean([_matched(m, mine) / len(m) for m in marks]))
    return 2 * precision * recall / (precision + recall)


def _matched(truth: set[int], found: set[int]) -> int:
    free, hits = set(found), 0
    for place in sorted(truth):
        near = [x for x in free if abs(x - place) <= MARGIN]
        if near:
            free.remove(min(near, key=lambda x: abs(x - place)))
            hits += 1
    return hits


def cover(item: Trial, found: tuple[int, ...]) -> float:
    """Overlap of the true segments with the best of the found ones, weighted by length, averaged over the annotators."""
    mine = _segments(found, item.points)
    marks = item.marks or (frozenset(),)
    return float(np.mean([sum((b - a) * max(_overlap((a, b), s) for s in mine) for a, b in _segments(tuple(m), item.points)) / item.points for m in marks]))


def _segments(places: tuple[int, ...], n: int) -> list[tuple[int, int]]:
    edges = [0, *sorted(p for p in set(places) if 0 < p < n), n]
    return list(pairwise(edges))


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> float:
    inner = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return inner / (a[1] - a[0] + b[1] - b[0] - inner)


def data_set() -> list[Trial]:
    """The univariate series of the Turing change point data set that are there."""
    annotations = json.loads((TCPD / "annotations.json").read_text())
    trials = []
    for path in sorted((TCPD / "series").glob("*.json")):
        data = json.loads(path.read_text())
        if data["n_dim"] == 1 and data["name"] in annotations:
            y = np.array([np.nan if v is None else v for v in data["series"][0]["raw"]], dtype=np.float64)
            trials.append(trial(data["name"], y, tuple(frozenset(m) for m in annotations[data["name"]].values())))
    return trials


def print_prices(nulls: list[Trial], changed: list[Trial], real: list[Trial]) -> tuple[float, float]:
    """One row per price; the price that the rule takes."""
    _say(f"\n{'price':>16s}  {'false':>6s}  " + " ".join(f"n={n:<4d}" for n in LENGTHS) + f"  {'F1':>5s} {'cover':>5s}" + ("   tcpd F1 cover" if real else ""))
    best, best_score = PRICES[0], -1.0
    for price in PRICES:
        wrong = defaultdict(list)
        for item in nulls:
            wrong[item.points].append(len(item.found(price)) > 0)
        false = float(np.mean([w for rows in wrong.values() for w in rows]))
        scores = [(f1(t, t.found(price)), cover(t, t.found(price))) for t in changed]
        score = np.mean(scores, axis=0)
        row = f"{price[0]:5.1f} + {price[1]:.2f} log n  {false:6.3f}  " + " ".join(f"{np.mean(wrong[n]):6.3f}" for n in LENGTHS)
        row += f"  {score[0]:.3f} {score[1]:.3f}"
        if real:
            row += "   {:7.3f} {:.3f}".format(*np.mean([(f1(t, t.found(price)), cover(t, t.found(price))) for t in real], axis=0))
        _say(row + ("   <- in use" if price == (method.PENALTY, method.PENALTY_PER_LOG) else ""))
        worst = max(float(np.mean(wrong[n])) for n in wrong)
        if false <= ALLOWED and worst <= AT_ANY_LENGTH and score.sum() > best_score:
            best, best_score = price, float(score.sum())
    return best


def print_kinds(title: str, trials: list[Trial]) -> None:
    """Each kind at the price in use."""
    price = (method.PENALTY, method.PENALTY_PER_LOG)
    rows = defaultdict(list)
    for item in trials:
        found = item.found(price)
        rows[item.kind].append((len(found) > 0, f1(item, found), cover(item, found)))
    _say(f"\n{title:22s} changed    F1  cover")
    for kind, values in rows.items():
        _say(f"{kind:22s}  {np.mean([v[0] for v in values]):6.3f} {np.mean([v[1] for v in values]):5.3f}  {np.mean([v[2] for v in values]):5.3f}")


def print_speed(seed: int) -> None:
    """Seconds by length, one step and a decay in correlated noise."""
    _say("\n   points   cpu s  found")
    rng = np.random.default_rng(seed)
    for n in (1_000, 10_000, 100_000, 1_000_000):
        y = np.exp(-np.arange(n) / (0.1 * n)) * 3 + 0.2 * rng.standard_normal(n)
        y[int(0.6 * n) :] += 0.5
        begin = time.process_time()
        found = method.changepoints(y)
        _say(f"{n:9d}  {time.process_time() - begin:6.2f}  {found}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="series of every kind, lengths in turn")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    begin = time.process_time()
    nulls, changed = [], []
    for number in range(args.runs):
        n = LENGTHS[number % len(LENGTHS)]
        for k, kind in enumerate(NULLS):
            nulls.append(trial(kind, series_without(kind, args.seed, 1000 * k + number, n), ()))
        for k, kind in enumerate(CHANGED):
            y, places = series_with(kind, args.seed, 1000 * k + number, n)
            changed.append(trial(kind, y, (frozenset(places),)))
    real = data_set() if TCPD.exists() else []
    _say(f"{len(nulls)} series without a change of {len(NULLS)} kinds, {len(changed)} with one to five changes of {len(CHANGED)} kinds")
    best = print_prices(nulls, changed, real)
    _say(f"the rule takes {best[0]:g} + {best[1]:g} log n")
    print_kinds("without a change", nulls)
    print_kinds("with changes", changed)
    if real:
        print_kinds("Turing data set", real)
    print_speed(args.seed)
    _say(f"\ncpu {time.process_time() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
