"""Analyse every run below a folder in local processes. Only a small row comes back from each, so that thousands fit."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import numpy as np

from forensics.correlate.batches import counts
from forensics.errors import InputError
from forensics.model import Absent, Case, Event, Run, Severity
from forensics.model.fleet import FleetEvent, FleetRun
from forensics.parsers.discovery import DiscoveredRun, discover
from forensics.vocabulary import Role

LONGEST_CONFIG = 500
"""Settings of one run that are kept."""

LONGEST_VALUE = 200
"""Characters of a setting that are kept."""


def find_runs(path: Path) -> tuple[DiscoveredRun, ...]:
    """Every run below a path. Raises InputError where there is none."""
    if not path.exists():
        raise InputError(f"{path} does not exist", "give a folder that holds runs")
    runs = discover(path).runs
    if not runs:
        raise InputError(f"no run below {path}", "give a folder that holds runs; `forensics inspect` says how a single one is read")
    return runs


def analyse_all(runs: Sequence[DiscoveredRun], jobs: int = 1, cases: Path | None = None) -> Iterator[FleetRun]:
    """One row per run, in their order, as they become known. ``cases`` is a folder that takes the case.json of each."""
    targets = [None if cases is None else cases / f"{n:04d}-{_safe(run.name)}.json" for n, run in enumerate(runs, 1)]
    if jobs <= 1 or len(runs) == 1:
        yield from (analyse_one(run, target) for run, target in zip(runs, targets, strict=True))
        return
    # Threads of polars do not survive a fork.
    with ProcessPoolExecutor(min(jobs, len(runs)), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(analyse_one, run, target) for run, target in zip(runs, targets, strict=True)]
        try:
            yield from (_result(run, future) for run, future in zip(runs, futures, strict=True))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def analyse_one(found: DiscoveredRun, target: Path | None = None) -> FleetRun:
    """Read and analyse one run; a run that cannot be is a row with its problem."""
    from forensics.parsers.reading import read  # noqa: PLC0415 - listing runs needs none of the analysis
    from forensics.pipeline import MEANINGFUL, build_case  # noqa: PLC0415
    from forensics.reports import json_report  # noqa: PLC0415

    try:
        run = read(found)
        if not any(len(s) for s in run.signals):
            return _failed(found, "; ".join(d.what for d in run.damage[:3]) or "no point could be read")
        if not any(s.role in MEANINGFUL for s in run.signals):
            return _failed(found, "no logged name was recognised as a loss or any other known signal")
        case = build_case(run)
        if target is not None:
            with target.open("w", encoding="utf-8", newline="\n") as file:
                json_report.render(case, file)
        return _row(run, case)
    except Exception as problem:  # noqa: BLE001 - one bad run must not hide the others
        return _failed(found, f"{type(problem).__name__}: {problem}")


def _row(run: Run, case: Case) -> FleetRun:
    ids, loss = run.signal(Role.BATCH_ID), run.signal(Role.LOSS)
    return FleetRun(
        path=run.path,
        name=run.name,
        verdict=case.verdict,
        first_step=case.run.first_step,
        last_step=case.run.last_step,
        points=sum(len(s) for s in run.signals),
        events=tuple(_event(e) for e in case.events if e.severity is not Severity.INFO),
        calm=sum(e.severity is Severity.INFO for e in case.events),
        damage=len(case.damage),
        counted_ids=not isinstance(ids, Absent) and counts(np.asarray(ids.curve().values)),
        steps_logged=0 if isinstance(loss, Absent) else len(loss.curve()),
        config={str(k): _short(v) for k, v in list(run.config.items())[:LONGEST_CONFIG]},
    )


def _event(event: Event) -> FleetEvent:
    best = None if event.undetermined or not event.hypotheses else event.hypotheses[0]
    batch = next((b.batch_id for b in event.batches if b.step == event.onset_step), None)
    cause, score = (None, None) if best is None else (best.cause, best.score)
    return FleetEvent(event.id, event.kind.value, event.severity.value, event.onset_step, cause, score, batch)


def _short(value: object) -> object:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:LONGEST_VALUE]


def _safe(name: str) -> str:
    """A name that stays within its folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80].lstrip(".") or "run"


def _result(found: DiscoveredRun, future: Future[FleetRun]) -> FleetRun:
    try:
        return future.result()
    except Exception as problem:  # noqa: BLE001 - a worker that died takes only its own run with it
        return _failed(found, f"{type(problem).__name__}: {problem}")


def _failed(found: DiscoveredRun, why: str) -> FleetRun:
    return FleetRun(str(found.path), found.name, problem=why[:300])
