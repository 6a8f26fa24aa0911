"""Simulation study of the event detectors: false alarms on healthy runs, and the detection curve of one event by its size.

    python -m tests.benchmarks.detection_study [--runs N] [--seed S] [--points P] [--kinds spike,drift] [--show]

Healthy runs differ in length, cadence, decay, learning-rate schedule, noise, scale and the healthy oddities on top. A false
alarm is a warning or a critical incident on such a run. Event runs are healthy runs with one event; sizes are in standard
deviations of the run's own noise at the event, or in the factor named in the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from forensics.detectors import Incident, find_incidents
from forensics.model import Run, Severity
from tests.benchmarks._simulated_runs import EVENTS, Setting, Truth, draw_setting, finish, make_material

NEAR = 12
"""An alarm this many logged points from the event belongs to it (the reach of grouping)."""

EXACT = 2
"""Onset errors up to this many logged points count as exact (product target)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One analysed run: alarms outside the event, and the event's own incident if it was found."""

    setting: Setting
    false: tuple[Incident, ...]
    truth: Truth | None = None
    found: Incident | None = None
    told: bool = False

    @property
    def error(self) -> int | None:
        """Onset error in logged points, None where the event was missed."""
        if self.found is None or self.truth is None:
            return None
        return round((self.found.event.onset_step) / self.setting.cadence) - self.truth.first


def study_healthy(setting: Setting) -> Outcome:
    """Alarms on a healthy run."""
    material, _ = make_material(setting)
    return Outcome(setting, tuple(_alarms(_incidents(finish(setting, material)))))


def study_event(setting: Setting, kind: str) -> Outcome:
    """What is found of one event placed in the middle half of a supervised run: in other families a rise is told, but no alarm."""
    setting = replace(setting, family=setting.family if setting.family in {"supervised", "overfit"} else "supervised")
    material, rng = make_material(setting)
    at = int(setting.points * rng.uniform(0.25, 0.8))
    truth = EVENTS[kind][0](setting, material, at, rng)
    incidents = _incidents(finish(setting, material))
    false, own = [], []
    slack = max(NEAR, (truth.last - truth.first) // 8 if kind in {"drift", "divergence"} else 0)
    for incident in incidents:
        point = round(incident.event.onset_step / setting.cadence) - 1
        mine = truth.first - slack <= point <= truth.last + NEAR and any(m.kind in truth.accept for m in incident.members)
        if mine:
            own.append(incident)
        elif incident.event.severity is not Severity.INFO:
            false.append(incident)
    loud = _alarms(own)
    found = min(loud, key=lambda i: abs(i.event.onset_step - (truth.first + 1) * setting.cadence)) if loud else None
    return Outcome(setting, tuple(false), replace(truth, first=truth.first + 1), found, bool(own))


def _incidents(run: Run) -> tuple[Incident, ...]:
    detection = find_incidents(run)
    if detection.failed:
        raise RuntimeError(detection.failed)
    return detection.incidents


def _alarms(incidents: Iterable[Incident]) -> list[Incident]:
    return [i for i in incidents if i.event.severity is not Severity.INFO]


def print_healthy(outcomes: Sequence[Outcome], show: bool) -> None:
    """False alarms by kind and by every property of the setting."""
    points = sum(o.setting.points for o in outcomes)
    alarms = [i for o in outcomes for i in o.false]
    clean = sum(not o.false for o in outcomes)
    _say(f"healthy runs {len(outcomes)}, points {points}: {len(alarms)} false alarms in {len(outcomes) - clean} runs,")
    _say(f"  {len(alarms) / len(outcomes):.3f} per run, {1e4 * len(alarms) / points:.3f} per 10,000 points; runs without any {clean / len(outcomes):.3f}")
    kinds = Counter(f"{i.event.kind.value} ({i.event.severity.value}, {i.event.signal})" for i in alarms)
    for kind, count in kinds.most_common():
        _say(f"  {count:5d}  {kind}")
    for name in ("family", "schedule", "decay", "noise", "scale", "oddity", "cadence"):
        _say(f"  by {name:9s}" + _split(outcomes, lambda o, name=name: str(getattr(o.setting, name))))  # type: ignore[misc]
    _say("  by points   " + _split(outcomes, lambda o: f"<{_size_class(o.setting.points)}"))
    if show:
        for outcome in outcomes:
            for incident in outcome.false:
                _say(f"    {_describe(outcome.setting)}\n      {_tell(incident, outcome.setting)}")


def _size_class(points: int) -> int:
    return next(limit for limit in (500, 2000, 6000, 20_001, 10**9) if points < limit)


def _split(outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> str:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    parts = [f"{name} {sum(len(o.false) for o in rows)}/{len(rows)}" for name, rows in sorted(groups.items())]
    return "  ".join(parts)


def print_event(kind: str, outcomes: Sequence[Outcome], show: bool) -> None:
    """Detection rate by size, onset error, kinds given, and alarms elsewhere."""
    _, unit, edges = EVENTS[kind]
    found = [o for o in outcomes if o.found is not None]
    errors = np.array([abs(o.error) for o in found if o.error is not None])
    exact = "none"
    if len(errors):
        exact = f"{(errors <= EXACT).mean():.2f} within {EXACT} points, median {np.median(errors):.0f}, p90 {np.quantile(errors, 0.9):.0f}"
    elsewhere = sum(len(o.false) for o in outcomes)
    _say(f"{kind}: found {len(found)}/{len(outcomes)}, onset {exact}; other alarms {elsewhere}")
    cells = []
    for low, high in pairwise(edges):
        rows = [o for o in outcomes if o.truth is not None and low <= o.truth.size < high]
        if rows:
            info = sum(o.told and o.found is None for o in rows)
            cells.append(f"{low:g}-{high:g}: {sum(o.found is not None for o in rows)}/{len(rows)}" + (f" (+{info} info)" if info else ""))
    _say(f"  by {unit}: " + "  ".join(cells))
    _say("  named " + ", ".join(f"{name} {count}" for name, count in Counter(o.found.event.kind.value for o in found if o.found).most_common()))
    if show:
        for outcome in outcomes:
            late = outcome.error is not None and abs(outcome.error) > EXACT
            if (outcome.found is None or late or outcome.false) and outcome.truth is not None:
                _say(f"    {_describe(outcome.setting)} at {outcome.truth.first} size {outcome.truth.size:.2f} error {outcome.error}")
                for incident in (*outcome.false, *([outcome.found] if outcome.found else [])):
                    _say(f"      {_tell(incident, outcome.setting)}")


def _describe(s: Setting) -> str:
    return f"#{s.number} n={s.points} every={s.cadence} {s.decay} {s.schedule} {s.noise} {s.scale} {s.oddity} {s.family} sd={s.sd:.4f}"


def _tell(incident: Incident, s: Setting) -> str:
    e = incident.event
    return f"{e.kind.value} {e.severity.value} at point {e.onset_step // s.cadence} p={e.p_value} conf={e.confidence:.2f}: {e.text}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="healthy runs, and runs of each kind of event")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, help="length of every run; by default from 200 to 20,000")
    parser.add_argument("--kinds", default=",".join(EVENTS), help="events to study, or none")
    parser.add_argument("--show", action="store_true", help="print every false alarm and every miss")
    args = parser.parse_args()
    begin = time.process_time()
    print_healthy([study_healthy(draw_setting(args.seed, k, args.points)) for k in range(args.runs)], args.show)
    for number, kind in enumerate(k for k in args.kinds.split(",") if k in EVENTS):
        first = 100_000 * (number + 1)
        print_event(kind, [study_event(draw_setting(args.seed, first + k, args.points), kind) for k in range(args.runs)], args.show)
    _say(f"cpu {time.process_time() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
