"""The scoreboard: analyses of labelled runs held against their labels.

A label says what was injected into a run, at which steps, which causes count as right, and whether the fault left a trace
in the log at all. What is judged, and how, is written at the functions; the figures mean the same for every tool that
writes ``forensics/1``.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from forensics.errors import InputError
from forensics.model import Case, Event, EventKind, Severity

SCHEMA = "forensics-bench/1"

SHORT = frozenset({"spike", "outlier", "loss_scale_drop"})
"""Faults that are over soon. A lasting fault explains every later alarm, a short one only those that follow it closely."""

AFTERMATH_STEPS = 200
"""Alarms up to this many steps after a short fault are its consequences."""

TOLERANCE_STEPS, TOLERANCE_POINTS = 5, 2
"""An onset may miss the labelled window by this many steps, or logged points where those are longer."""

EXACT_STEPS = 30
"""A labelled window wider than this has no one exact step: it counts for recall, not for the onset error."""

BIN_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)
"""Edges of the score bins of the reliability table."""

SHOWN = 4
"""Alarms of a healthy run that a row names."""


@dataclass(frozen=True, slots=True)
class Label:
    """The truth about one run. ``first`` and ``last`` step of the labelled onset, None on a clean run.

    ``accept`` the causes that are right; ``visible`` whether the fault left a trace; ``also`` further windows of the same fault.
    """

    id: str
    run: str
    event: str
    every: float
    injected: str | None
    accept: tuple[str, ...]
    first: int | None
    last: int | None
    visible: bool
    also: tuple[tuple[int, int], ...] = ()

    @property
    def clean(self) -> bool:
        """Nothing was done to this run."""
        return self.event == "none"

    @property
    def exact(self) -> bool:
        """The label names the onset closely enough to measure an error."""
        return self.first is not None and self.last is not None and self.last - self.first <= EXACT_STEPS


@dataclass(frozen=True, slots=True)
class Row:
    """The judgement of one run. ``found``, ``top1`` and ``top3`` are None where the run does not count for them.

    ``error`` of the onset in logged points; ``false`` alarms that the label does not explain; ``said`` the causes named
    first, the alarms of a clean run, or why there is no report; ``score`` that of the first cause; ``beside`` the same run
    judged by the simple rules, in their order.
    """

    id: str
    event: str
    events: int
    found: bool | None = None
    kind: str | None = None
    error: float | None = None
    top1: bool | None = None
    top3: bool | None = None
    false: int = 0
    said: tuple[str, ...] = ()
    score: float | None = None
    beside: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares are of the runs that count: visible faults, those of them with an exact step for the onset, clean runs."""

    runs: int
    recall: float
    top1: float
    top3: float
    onset_error_median: float | None
    onset_within_2: float
    clean_runs_with_alarm: int
    clean_runs: int
    false_alarms: int


def read_labels(path: Path) -> tuple[Label, ...]:
    """Read a label file. Raises InputError, naming the entry, where it is not one; OSError where it cannot be read."""
    try:
        data = json.loads(path.read_bytes())
    except ValueError as problem:
        raise InputError(f"{path}: not JSON ({problem})", "give a labels.json: a list of labelled runs") from problem
    return parse_labels(data, str(path))


def parse_labels(data: object, where: str) -> tuple[Label, ...]:
    """Labels out of JSON data. Raises InputError, naming the entry, where it does not fit."""
    if not isinstance(data, list) or not data:
        raise InputError(f"{where}: expected a list of labelled runs", "see CONTRIBUTING.md for the format of labels")
    return tuple(_label(entry, f"{where}: entry {n}") for n, entry in enumerate(data, 1))


def judge_all(labels: Sequence[Label], root: Path, jobs: int = 1) -> Iterator[Row]:
    """Analyse the runs below ``root`` in ``jobs`` processes; rows in the order of the labels, as they become known."""
    if jobs <= 1:
        yield from (judge_run(label, root) for label in labels)
        return
    # Threads of polars do not survive a fork.
    with ProcessPoolExecutor(min(jobs, len(labels)), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(judge_run, label, root) for label in labels]
        try:
            yield from (_result(label, future) for label, future in zip(labels, futures, strict=True))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def judge_run(label: Label, root: Path) -> Row:
    """Analyse one run and judge the case. A run that cannot be analysed counts as missed, on a clean run as an alarm."""
    from forensics.loading import load  # noqa: PLC0415 - reading labels needs none of the analysis
    from forensics.pipeline import build_case  # noqa: PLC0415
    from forensics.simple_rules import RULES  # noqa: PLC0415

    try:
        run = load(root / label.run)
        case = build_case(run)
        return replace(judge(label, case), beside=tuple(judge(label, _alarms_only(case, rule(run))) for _, rule in RULES))
    except Exception as problem:  # noqa: BLE001 - one bad run must not hide the others
        return _failed(label, problem)


def _alarms_only(case: Case, steps: Sequence[int]) -> Case:
    """The case as a rule sees it that only raises alarms."""
    events = tuple(Event(EventKind.SPIKE, Severity.WARNING, 1.0, "", step, step, f"E{n}") for n, step in enumerate(steps, 1))
    return replace(case, events=events)


def judge(label: Label, case: Case) -> Row:
    """Hold a case against its label.

    An alarm is an event of severity warning or more. It finds the fault if it begins in the labelled window, or spans it
    without being far longer. The causes named are those of all alarms that found it, best score first.
    """
    alarms = [e for e in case.events if e.severity is not Severity.INFO]
    first, last = label.first, label.last
    if label.clean or first is None or last is None:
        said = tuple(f"{e.kind} at {e.onset_step}" for e in alarms[:SHOWN])
        return Row(label.id, label.event, len(alarms), false=len(alarms), said=said)
    tolerance = max(TOLERANCE_STEPS, TOLERANCE_POINTS * label.every)
    hits = [e for e in alarms if finds(e, first, last, tolerance)]
    aftermath = last + AFTERMATH_STEPS if label.event in SHORT else math.inf
    explained = [(first - tolerance, aftermath), *((a - tolerance, b + tolerance) for a, b in label.also)]
    false = sum(not any(low <= e.onset_step <= high for low, high in explained) for e in alarms if e not in hits)
    if not label.visible:
        return Row(label.id, label.event, len(alarms), false=false)
    if not hits:
        return Row(label.id, label.event, len(alarms), found=False, top1=False, top3=False, false=false)
    nearest = min(hits, key=lambda e: abs(e.onset_step - first))
    hypotheses = sorted((h for e in hits for h in e.hypotheses), key=lambda h: -h.score)
    named = tuple(dict.fromkeys(h.cause for h in hypotheses))[:3]
    return Row(
        id=label.id,
        event=label.event,
        events=len(alarms),
        found=True,
        kind=nearest.kind.value,
        error=abs(nearest.onset_step - first) / label.every if label.exact else None,
        top1=bool(named) and named[0] in label.accept,
        top3=any(cause in label.accept for cause in named),
        false=false,
        said=named,
        score=hypotheses[0].score if hypotheses else None,
    )


def figures(labels: Sequence[Label], rows: Sequence[Row]) -> Figures:
    """Sum the rows up. ``onset_within_2`` counts a fault that was not found as missed."""
    seen = [row for row in rows if row.found is not None]
    exact = [row for row, label in zip(rows, labels, strict=True) if row.found is not None and label.exact]
    errors = [row.error for row in exact if row.error is not None]
    clean = [row for row in rows if row.event == "none"]
    return Figures(
        runs=len(rows),
        recall=_share(sum(row.found is True for row in seen), len(seen)),
        top1=_share(sum(row.top1 is True for row in seen), len(seen)),
        top3=_share(sum(row.top3 is True for row in seen), len(seen)),
        onset_error_median=statistics.median(errors) if errors else None,
        onset_within_2=_share(sum(error <= 2 for error in errors), len(exact)),
        clean_runs_with_alarm=sum(row.false > 0 for row in clean),
        clean_runs=len(clean),
        false_alarms=sum(row.false for row in rows),
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Faults whose first cause had a score from ``low`` to below ``high``: how many, their mean score, and the share that was right."""

    low: float
    high: float
    count: int
    mean_score: float
    right: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether scores mean what they say. ``brier`` is the mean squared difference of score and truth (0 perfect, 0.25 a coin)."""

    brier: float | None
    bins: tuple[Bin, ...]


def calibration(rows: Sequence[Row]) -> Calibration:
    """Reliability of the first cause's score over all faults that were found."""
    pairs = [(row.score, bool(row.top1)) for row in rows if row.score is not None and row.top1 is not None]
    if not pairs:
        return Calibration(None, ())
    bins = []
    for low, high in pairwise(BIN_EDGES):
        inside = [(score, right) for score, right in pairs if low <= score < high]
        if inside:
            mean = sum(score for score, _ in inside) / len(inside)
            bins.append(Bin(low, min(high, 1.0), len(inside), mean, sum(right for _, right in inside) / len(inside)))
    return Calibration(sum((score - right) ** 2 for score, right in pairs) / len(pairs), tuple(bins))


def sample(labels: Sequence[Label], count: int | None) -> Sequence[Label]:
    """About ``count`` labels, evenly spread; all where it is None."""
    return labels if count is None else labels[:: max(1, len(labels) // count)]


def finds(event: Event, first: int, last: int, tolerance: float) -> bool:
    """The event begins in the labelled window, or spans it without being far longer."""
    onset = event.onset_step
    if first - tolerance <= onset <= last + tolerance:
        return True
    end = event.end_step or event.peak_step or onset
    return onset < first - tolerance <= end and end - onset <= 3 * max(last - first, tolerance)


def _result(label: Label, future: Future[Row]) -> Row:
    try:
        return future.result()
    except Exception as problem:  # noqa: BLE001 - a worker that died takes only its own run with it
        return _failed(label, problem)


def _failed(label: Label, problem: Exception) -> Row:
    missed = False if label.visible and not label.clean else None
    why = f"{type(problem).__name__}: {problem}"[:160]
    return Row(label.id, label.event, 0, found=missed, top1=missed, top3=missed, false=int(label.clean), said=(why,))


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def _label(entry: object, where: str) -> Label:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where}: expected an object, found {type(entry).__name__}")
    missing = [key for key in ("id", "run", "event", "onset") if key not in entry]
    if missing:
        raise InputError(f"{where}: {', '.join(missing)} missing", "see CONTRIBUTING.md for the format of labels")
    try:
        first, last = entry["onset"]
        clean = entry["event"] == "none"
        return Label(
            id=str(entry["id"]),
            run=str(entry["run"]),
            event=str(entry["event"]),
            every=float(entry.get("every", 1)),
            injected=None if entry.get("injected") is None else str(entry["injected"]),
            accept=tuple(str(cause) for cause in entry.get("accept") or ()),
            first=None if clean else int(first),
            last=None if clean else int(last),
            visible=bool(entry.get("visible")),
            also=tuple((int(a), int(b)) for a, b in entry.get("also") or ()),
        )
    except (TypeError, ValueError) as problem:
        raise InputError(f"{where}: {problem}", "see CONTRIBUTING.md for the format of labels") from problem
