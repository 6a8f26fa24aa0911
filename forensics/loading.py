"""From a path to one run that was read: the part of the work that every command shares.

Nothing here imports detection or causes, so that commands that only read stay as fast as the reading.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from forensics.errors import InputError, SeveralRunsError
from forensics.model import CheckpointInfo, Inspected, Run, RunInfo, Signal, SignalInfo, Stability
from forensics.parsers.discovery import DiscoveredRun, discover
from forensics.parsers.interface import Progress
from forensics.parsers.reading import read


def find_run(path: Path, choose: str | None = None) -> DiscoveredRun:
    """The one run under a path. ``choose`` is a part of a run's path or name where there are several.

    Raises InputError where there is nothing to read and SeveralRunsError where the path holds more than one.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist", "check the path; give a run directory, a log file, or a folder that holds one")
    found = discover(path)
    runs = found.runs
    if choose is not None:
        exact = [r for r in runs if choose in {r.name, str(r.path), r.path.name}]
        runs = tuple(exact or [r for r in runs if choose in r.name or choose in str(r.path)])
        if not runs:
            raise InputError(f"no run under {path} matches {choose!r}", "the runs found are: " + ", ".join(r.name for r in found.runs[:20]))
    if not runs:
        damaged = "; ".join(f"{d.path}: {d.what}" for d in found.damage[:5])
        many = "s" if found.unclaimed != 1 else ""
        looked = f"{found.unclaimed} file{many} looked at, none is a log that is read here" if found.unclaimed else "there are no files in it"
        raise InputError(
            f"nothing to read in {path}: {damaged or looked}",
            "logs that are read: W&B .wandb, TensorBoard event files, MLflow (mlflow.db or mlruns), trainer_state.json, CSV, JSON, Parquet, console logs",
        )
    if len(runs) > 1:
        raise SeveralRunsError(path, tuple((r.name, str(r.path)) for r in runs))
    return runs[0]


def load(path: Path | str, *, metrics: Mapping[str, str] | None = None, choose: str | None = None, progress: Progress | None = None) -> Run:
    """Read the run under a path. ``metrics`` maps role -> logged name.

    Raises InputError where no point could be read, or a named metric does not exist.
    """
    run = read(find_run(Path(path), choose), progress, metrics)
    names = {s.name for s in run.signals}
    for role, name in (metrics or {}).items():
        if name not in names:
            raise InputError(f"--metric {role}={name}: the log has no {name!r}", "names in the log: " + listed(run))
    if not any(len(s) for s in run.signals):
        damaged = "; ".join(f"{d.what} (lost: {d.lost})" for d in run.damage[:5])
        raise InputError(f"no point could be read from {path}" + (f": {damaged}" if damaged else ""), "is the file complete? was anything logged?")
    return run


@contextmanager
def _without_collector() -> Iterator[None]:
    """No search for reference cycles: reading makes millions of objects and no cycles among them."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def describe(signal: Signal) -> SignalInfo:
    """How a logged name was read."""
    if len(signal) == 0:
        return SignalInfo(signal.name, signal.role, 0, None, None, None, 0)
    distance = np.diff(signal.steps)
    if len(distance) and distance.min() <= 0:
        distance = np.diff(np.unique(signal.steps))
    return SignalInfo(
        name=signal.name,
        role=signal.role,
        points=len(signal),
        first_step=int(signal.steps.min()),
        last_step=int(signal.steps.max()),
        every=float(np.median(distance)) if len(distance) else None,
        non_finite=int((~np.isfinite(signal.values)).sum()),
        primary=signal.role is not None and signal.rank == 0,
    )


def listed(run: Run) -> str:
    """The logged names for an error message, cut where there are many."""
    names = [s.name for s in run.signals]
    return ", ".join(names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")


def header(run: Run, stability: Stability = Stability()) -> RunInfo:  # noqa: B008 - an immutable default
    """The run's header for JSON."""
    steps = [s.steps for s in run.signals if len(s)]
    return RunInfo(
        path=run.path,
        name=run.name,
        sources=run.sources,
        first_step=int(min(s.min() for s in steps)) if steps else None,
        last_step=int(max(s.max() for s in steps)) if steps else None,
        attempts=run.attempts,
        config=dict(run.config),
        notes=dict(run.notes),
        stability_score=stability,
        checkpoints=tuple(_checkpoint(c) for c in run.checkpoints),
    )


def _checkpoint(one: Inspected) -> CheckpointInfo:
    found = one.checkpoint
    health = "not read" if one.good is None else "good" if one.good else "bad"
    faults = (*(f.text for f in one.faults), *(d.what for d in (*found.damage, *one.damage)), *found.findings)
    return CheckpointInfo(found.path, found.format, found.step, health, found.optimizer_steps and found.optimizer_steps[1], faults, one.unread)
