"""What a replay will do: from which checkpoint, which steps, which experiments, at what cost. Pure: nothing is run here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forensics.correlate.settings import read_settings
from forensics.errors import InputError
from forensics.model import Absent, Attempt, Case, Checkpoint, Curve, Event, EventKind, FloatArray, Run, Severity, Signal, TensorKind
from forensics.parsers.checkpoints.health import health
from forensics.replay.wire import Request, State, Target
from forensics.vocabulary import Role

CALM = 3
"""A checkpoint should lie at least this many steps before the event, so that calm steps show that the replay is faithful."""

LEVEL = 50
"""Logged steps before the event whose median is its baseline."""

LONGEST = 60
"""Steps of a long event that are replayed: its beginning tells its cause."""

AFTER = 10
"""Steps that are replayed beyond the event."""

WITHOUT_EVENT = 40
"""Steps that are replayed where there is no event."""

NEAR_RESUME = 20
"""An event at most this many steps after a resume may come from it."""

AUDITED = 600
"""A checkpoint up to this many steps after the event is compared with the replay."""

EARLIER = 100
"""How far before the event an earlier state should lie."""

JUDGED_BYTES = 4 << 30
"""Checkpoints up to this size are read whole before they are trusted."""

ALWAYS = ("R0", "R1", "R11")
WINDOW = {"R2": 1, "R3": 1, "R5": 3, "R6": 3, "R7": 2, "R8": 5, "R10": 1, "R14": 4, "R16": 1, "R9": 1}
"""Experiment -> windows of steps that it takes at most."""

QUESTIONS = {
    "R4": "which samples",
    "R2": "the batch or the state",
    "R3": "the state or the batch",
    "R5": "the number format",
    "R6": "the step size",
    "R7": "clipping",
    "R8": "the optimizer's state",
    "R9": "this device",
    "R10": "the loss scale",
    "R14": "which component",
    "R15": "the curvature",
    "R16": "the order of the samples",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for."""

    recipe: str
    name: str = "recipe"
    step: int | None = None
    event: str | None = None
    checkpoint: str | None = None
    device: str = "cpu"
    experiments: tuple[str, ...] = ()
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A request, and what a person wants to know before it runs. ``steps`` is the largest number of training steps."""

    request: Request
    event: Event | None
    steps: int
    memory: int
    experiments: tuple[str, ...]
    notes: tuple[str, ...]


def make_plan(run: Run, case: Case, checkpoints: Sequence[Checkpoint], wish: Wish) -> Plan:
    """Choose event, checkpoints and steps. Raises InputError where there is nothing to start from."""
    event = _event(case, wish)
    notes: list[str] = []
    target = _target(run, event, wish.step, checkpoints)
    first = _first_step(run)
    offset = 1 if first == 1 else 0
    if offset:
        notes.append("the log counts from 1: a checkpoint saved after N steps is followed by step N+1")
    dated = [(c, c.step + offset) for c in checkpoints if c.step is not None]
    resumed = _resumed(run, target)
    start = _start(dated, target, wish, notes, offset)
    at_resume = _at_resume(dated, target, resumed)
    earlier = _last([(c, s) for c, s in dated if s < start.step and (s <= target.onset - EARLIER or s < start.step)])
    after = (
        next((State(c.path, s) for c, s in sorted(dated, key=lambda d: d[1]) if target.onset < s <= target.onset + AUDITED), None) if target.is_event else None
    )
    last_logged = _last_step(run)
    last = min(target.last + (AFTER if target.is_event else 0), last_logged)
    if start.step > last:
        raise InputError(
            f"the checkpoint before step {start.step} lies after the last step to replay ({last})", "name an earlier one with --checkpoint, or a later --step"
        )
    curves = _logged(run, target, event, start.step, max(last, after.step if after else last))
    settings = read_settings(run.config)
    request = Request(
        recipe=str(Path(wish.recipe).resolve()) if wish.recipe.endswith(".py") or "/" in wish.recipe else wish.recipe,
        name=wish.name,
        run_dir=str(_folder(run)),
        config=nested(run),
        device=wish.device,
        target=target,
        start=start,
        last=last,
        earlier=earlier,
        at_resume=at_resume,
        after=after,
        resumed=resumed,
        logged=curves,
        clip=settings.clip,
        experiments=wish.experiments,
        threads=wish.threads,
    )
    wanted = tuple(e for e in QUESTIONS if not wish.experiments or e in wish.experiments) if target.is_event else ()
    window = target.last - target.onset + 12
    steps = 8 + 2 * (last - start.step + 1) + (9 * 13 if at_resume else 0) + sum(WINDOW.get(e, 0) * window for e in wanted)
    chosen = next((c for c, s in dated if c.path == start.path), None)
    weights = sum(t.numel * 4 for t in chosen.tensors if t.kind is TensorKind.PARAM) if chosen is not None else 0
    notes += _cannot(run, target, chosen)
    return Plan(request, event, steps, 4 * weights + 6 * weights + 2 * 3 * weights, (*ALWAYS, *wanted), tuple(notes))


def _event(case: Case, wish: Wish) -> Event | None:
    alarms = sorted((e for e in case.events if e.severity is not Severity.INFO), key=lambda e: (e.severity is not Severity.CRITICAL, e.onset_step))
    if wish.event is not None:
        found = next((e for e in case.events if e.id == wish.event), None)
        if found is None:
            raise InputError(
                f"the case has no event {wish.event}", "it has " + (", ".join(f"{e.id} (step {e.onset_step})" for e in case.events[:20]) or "none")
            )
        return found
    step = wish.step
    if step is None:
        return alarms[0] if alarms else None
    near = [e for e in case.events if e.onset_step - 2 <= step <= max(e.peak_step, e.end_step if e.end_step is not None else e.peak_step) + 2]
    near.sort(key=lambda e: (e.severity is Severity.INFO, abs(e.onset_step - step)))
    return near[0] if near else None


def _target(run: Run, event: Event | None, step: int | None, checkpoints: Sequence[Checkpoint]) -> Target:
    loss = run.signal(Role.LOSS)
    if event is None:
        if step is None:
            steps = [c.step for c in checkpoints if c.step is not None and c.step < _last_step(run)]
            step = (max(steps) if steps else _first_step(run)) + WITHOUT_EVENT // 2
        return Target("none", "loss", step, min(step + WITHOUT_EVENT // 2, _last_step(run)))
    name = "grad_norm" if _role_of(run, event.signal) == Role.GRAD_NORM else "loss"
    signal = run.signal(Role.GRAD_NORM if name == "grad_norm" else Role.LOSS)
    if isinstance(signal, Absent):
        signal = loss
    peak = max(event.peak_step, event.onset_step)
    last = min(peak, event.onset_step + LONGEST)
    if isinstance(signal, Absent):
        return Target(event.kind.value, name, event.onset_step, last)
    curve = _curve(signal, event)
    onset = event.onset_step - int(max(0, _cadence(curve) - 1))
    bad = _first_non_finite(run, event)
    before = curve.values[(curve.steps < event.onset_step) & np.isfinite(curve.values)][-LEVEL:]
    inside = curve.values[(curve.steps >= event.onset_step - 1) & (curve.steps <= last + 1) & np.isfinite(curve.values)]
    baseline = float(np.median(before)) if len(before) else math.nan
    height = math.nan
    if len(before) and len(inside):
        up, down = float(inside.max()) - baseline, float(inside.min()) - baseline
        height = down if event.kind is EventKind.DROP else up
        if not _stands_out(before, height):
            height = math.nan
    return Target(event.kind.value, name, onset, last if bad is None else max(bad, onset), baseline, height, bad)


def _stands_out(before: FloatArray, height: float) -> bool:
    """Whether the signal shows the event at all: a restart may have none of its own height."""
    spread = 1.4826 * float(np.median(np.abs(before - np.median(before))))
    trend = float(np.abs(before - np.median(before)).max())
    return abs(height) > max(4 * spread, 1.2 * trend)


def _first_non_finite(run: Run, event: Event) -> int | None:
    if event.kind is not EventKind.NON_FINITE:
        return None
    steps = []
    for role in (Role.LOSS, Role.GRAD_NORM):
        signal = run.signal(role)
        if not isinstance(signal, Absent):
            bad = signal.steps[~np.isfinite(signal.values.astype(np.float64))]
            steps += [int(s) for s in bad if s >= event.onset_step][:1]
    return min(steps, default=None)


def _role_of(run: Run, name: str) -> str | None:
    return next((s.role for s in run.signals if s.name == name), None)


def _curve(signal: Signal, event: Event | None) -> Curve:
    """The curve of the attempt that the event is in: where steps were written twice, the one that has the event's peak."""
    attempts = len(signal.starts)
    if event is not None and event.peak is not None and isinstance(event.peak, (int, float)):
        for count in range(attempts, 0, -1):
            curve = signal.curve(count)
            at = np.flatnonzero(curve.steps == event.peak_step)
            if len(at) and abs(float(curve.values[at[0]]) - event.peak) <= 1e-9 * abs(event.peak):
                return curve
    return signal.curve()


def _cadence(curve: Curve) -> float:
    return float(np.median(np.diff(curve.steps))) if len(curve) > 2 else 1.0


def _first_step(run: Run) -> int:
    return int(min((s.steps.min() for s in run.signals if s.role in (Role.LOSS, Role.GRAD_NORM, Role.LR) and len(s)), default=0))


def _last_step(run: Run) -> int:
    return int(max((s.steps.max() for s in run.signals if s.role in (Role.LOSS, Role.GRAD_NORM, Role.LR) and len(s)), default=0))


def _resumed(run: Run, target: Target) -> int | None:
    starts = [a.first_step for a in run.attempts if isinstance(a, Attempt) and a.resumed_from is not None]
    return next((s for s in reversed(starts) if s - 1 <= target.onset <= s + NEAR_RESUME), None) if target.is_event else None


def _at_resume(dated: Sequence[tuple[Checkpoint, int]], target: Target, resumed: int | None) -> State | None:
    if not target.is_event:
        return None
    places = {resumed} if resumed is not None else {target.onset - 1, target.onset, target.onset + 1}
    return _last([(c, s) for c, s in dated if s in places])


def _last(dated: Sequence[tuple[Checkpoint, int]]) -> State | None:
    best = max(dated, key=lambda d: d[1], default=None)
    return State(best[0].path, best[1]) if best is not None else None


def _start(dated: list[tuple[Checkpoint, int]], target: Target, wish: Wish, notes: list[str], offset: int) -> State:
    if wish.checkpoint is not None:
        path = Path(wish.checkpoint)
        if not path.exists():
            raise InputError(f"there is no checkpoint {path}", "give the path of a file or folder that exists")
        known = next((s for c, s in dated if Path(c.path).resolve() == path.resolve()), None)
        if known is None:
            from forensics.parsers.checkpoints.reading import read

            step = read(path).step
            known = target.onset if step is None else step + offset
            if step is None:
                notes.append(f"{path.name} does not say its step; the recipe's load() must")
        return State(str(path), known)
    latest = target.onset - CALM if target.is_event else target.onset
    before = sorted((d for d in dated if d[1] <= latest), key=lambda d: -d[1])
    for checkpoint, step in before:
        judged = health(checkpoint, JUDGED_BYTES)
        if judged.good is not False:
            if judged.good is None:
                notes.append(f"{Path(checkpoint.path).name} is too large to be judged by its numbers; it is taken as good")
            return State(checkpoint.path, step)
        why = judged.faults[0].text if judged.faults else "; ".join(d.what for d in judged.damage[:1])
        notes.append(f"{Path(checkpoint.path).name} is passed over: {why}")
    if before:
        notes.append("every checkpoint before the event has something odd; the nearest is taken")
        return State(before[0][0].path, before[0][1])
    close = sorted((d for d in dated if d[1] <= target.onset), key=lambda d: -d[1])
    if close:
        notes.append("the checkpoint lies right at the event: no calm steps can show that the replay is faithful")
        return State(close[0][0].path, close[0][1])
    if not dated:
        raise InputError("no checkpoint was found beside the log", "name one with --checkpoint PATH; without a checkpoint nothing can be replayed")
    raise InputError(
        f"no checkpoint at or before step {target.onset}: the first one is of step {min(s for _, s in dated)}", "name an earlier one with --checkpoint PATH"
    )


def _logged(run: Run, target: Target, event: Event | None, first: int, last: int) -> dict[str, dict[int, float]]:
    out: dict[str, dict[int, float]] = {}
    for role, name in ((Role.LOSS, "loss"), (Role.GRAD_NORM, "grad_norm"), (Role.LR, "lr"), (Role.LOSS_SCALE, "loss_scale")):
        signal = run.signal(role)
        if isinstance(signal, Absent):
            continue
        curve = _curve(signal, event if name == target.signal else None)
        inside = (curve.steps >= first) & (curve.steps <= last)
        out[name] = {int(s): float(v) for s, v in zip(curve.steps[inside], curve.values[inside], strict=True)}
    return out


def _folder(run: Run) -> Path:
    path = Path(run.path).resolve()
    return path if path.is_dir() else path.parent


def nested(run: Run) -> dict[str, Any]:
    """The configuration as it was written: a config.json of the run itself, else the logged keys put back into a tree."""
    file = _folder(run) / "config.json"
    try:
        if file.is_file() and file.stat().st_size < 4 << 20:
            raw = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(raw, dict):
                return raw
    except (OSError, ValueError, RecursionError):
        pass
    return tree(run.config)


def tree(flat: Mapping[str, object]) -> dict[str, Any]:
    """``a.b`` keys as nested dictionaries; a key that is both a value and a branch keeps its dots."""
    out: dict[str, Any] = {}
    for key, value in flat.items():
        place: dict[str, Any] = out
        parts = str(key).split(".")
        for part in parts[:-1]:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            if not isinstance(place.get(parts[-1]), dict):
                place[parts[-1]] = _plain(value)
                continue
        out[str(key)] = _plain(value)
    return out


def _plain(value: object) -> Any:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value)


def _cannot(run: Run, target: Target, checkpoint: Checkpoint | None) -> list[str]:
    notes = []
    if checkpoint is not None and not checkpoint.rng:
        notes.append("the checkpoint holds no random state: dropout and augmentation cannot be repeated exactly")
    if checkpoint is not None and not checkpoint.param_groups:
        notes.append("the checkpoint holds no optimizer state: the first steps after it are not those of the run")
    loss = run.signal(Role.LOSS)
    if not isinstance(loss, Absent) and _cadence(loss.curve()) > 1:
        notes.append(f"the loss is logged every {_cadence(loss.curve()):g} steps: only those can be compared, and they may be averages")
    if isinstance(run.signal(Role.GRAD_NORM), Absent):
        notes.append("the gradient norm was not logged: only the loss can be compared")
    if target.is_event and not target.has_height:
        notes.append("the event has no height of its own in the loss: the replay is held against the log step by step")
    notes.append("R12 (parallel layout) and R13 (other versions of code) are not run: they need the user's launcher and checkouts")
    return notes


def widened(plan: Plan, **changes: Any) -> Plan:
    """A plan with parts of its request replaced."""
    return replace(plan, request=replace(plan.request, **changes))
