"""The spine: a path in, a case out. Read this file top to bottom to see what the tool does."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from forensics.advice.sentences import advice
from forensics.causes.catalogue import RULES
from forensics.causes.interface import Examination
from forensics.causes.manual import text
from forensics.causes.unseen import UNSEEN
from forensics.correlate import signs
from forensics.correlate.batches import batches_at
from forensics.correlate.coverage import not_checked
from forensics.correlate.profile import clip_threshold, lr_phases, profile
from forensics.correlate.ranking import Examined, Ranking, rank
from forensics.correlate.related import related
from forensics.correlate.stability import stability
from forensics.correlate.verdict import verdict
from forensics.correlate.view import View
from forensics.detectors import Incident, find_incidents
from forensics.errors import InputError
from forensics.loading import describe, header, listed, load
from forensics.model import Case, Event, EventKind, Inspected, NotChecked, Rejected, Run, Series, Severity, SourceInfo
from forensics.parsers.interface import Progress
from forensics.plugins import CAUSES, DETECTORS, plugins
from forensics.primitives.curves import Curves
from forensics.reports.thinning import thin
from forensics.version import __version__
from forensics.vocabulary import Role

DRAWN = 60
"""Signals whose curves go into the case: primaries of every role first, then those named in events."""

MOST_INFO = 8
"""Info events of one kind that are explained, the first ones: a healthy run may have dozens of surges, and they are cheap to list."""

MOST_EDITS = 4
"""Changed settings that are named with a restart."""

AROUND_POINTS = 400
"""Logged points on either side of an event that stay whole."""


def analyze(
    path: Path | str,
    *,
    metrics: Mapping[str, str] | None = None,
    choose: str | None = None,
    progress: Progress | None = None,
    checkpoints: CheckpointMode = "auto",
) -> Case:
    """Analyse the run under a path: what happened, at which step, and why.

    ``metrics`` maps role -> logged name and overrides the vocabulary; ``choose`` picks a run where the path holds several;
    ``progress`` is called with the bytes just read; ``checkpoints`` says how much is read of those beside the logs: "auto" all
    facts, and numbers up to a bound near the incidents; "all" every number; "none" nothing. Raises InputError (SeveralRunsError
    among them) where there is nothing to analyse; damaged input is no error, it is listed in ``case.damage``.
    """
    run = load(Path(path), metrics=metrics, choose=choose, progress=progress)
    if not any(s.role in MEANINGFUL for s in run.signals):
        raise InputError(
            "no logged name was recognised as a loss, learning rate or any other known signal",
            f"say which is which with --metric loss=NAME; the names are: {listed(run)}",
        )
    alone = Path(path).is_dir() and choose is None
    return build_case(run if checkpoints == "none" else with_checkpoints(run, Path(path) if alone else None), checkpoints)


CheckpointMode = Literal["auto", "all", "none"]
"""How much is read of the checkpoints beside the logs."""

MEANINGFUL = frozenset(r.value for r in Role) - {Role.STEP, Role.WALL_TIME, Role.EPOCH}
"""Roles that say something about the training; steps and clocks alone do not."""


def build_case(run: Run, checkpoints: CheckpointMode = "auto") -> Case:
    """The case of a run that was read."""
    extra = plugins(DETECTORS)
    run = run if checkpoints == "none" else with_checkpoints(run)
    detection = find_incidents(run, extra.loaded)
    run = with_numbers(run, [i.event.onset_step for i in detection.incidents if i.event.severity is not Severity.INFO], checkpoints)
    whole = detection.curves or Curves(run)
    explained = explain(run, detection.incidents, whole)
    failed = (*(NotChecked(what, why) for what, why in (*extra.failed, *plugins(CAUSES).failed)), *detection.failed, *explained.failed)
    about = header(run, stability(run, explained.events))
    info = replace(about, notes={**profile(run, whole), **about.notes}, sources=tuple(_hashed(s) for s in run.sources))
    info = replace(info, lr_phases=lr_phases(whole), clip=clip_threshold(run, whole))
    case = Case(
        tool_version=__version__,
        run=info,
        signals=tuple(describe(s) for s in run.signals),
        verdict=verdict(run, explained.events),
        events=explained.events,
        series=_series(run, explained.events),
        rejected=explained.rejected,
        not_checked=(*failed, *not_checked(run), _without_rule()),
        damage=(*run.damage, *(d for c in run.checkpoints for d in (*c.checkpoint.damage, *c.damage))),
    )
    return replace(case, advice=advice(case))


def with_checkpoints(run: Run, root: Path | None = None) -> Run:
    """The run with the facts of the checkpoints beside its logs, or under ``root``, a folder that holds this run alone."""
    from forensics.parsers.checkpoints.beside import checkpoints_of, folder_of

    folder = folder_of(Path(run.path)) if root is None else root
    if run.checkpoints or folder is None:
        return run
    return replace(run, checkpoints=tuple(Inspected(c) for c in checkpoints_of(folder)))


def with_numbers(run: Run, steps: Sequence[int], mode: CheckpointMode) -> Run:
    """The run with the numbers of its checkpoints, those nearest to the incidents first, as far as ``mode`` says."""
    if not run.checkpoints or any(c.stats is not None for c in run.checkpoints):
        return run
    from forensics.parsers.checkpoints.inspection import inspect_all

    near = [*steps, *(a.first_step for a in run.attempts[1:])]
    return replace(run, checkpoints=inspect_all([c.checkpoint for c in run.checkpoints], near, everything=mode == "all"))


@dataclass(frozen=True, slots=True)
class Explained:
    """Events with their hypotheses, what was rejected on the way, and rules that failed."""

    events: tuple[Event, ...]
    rejected: tuple[Rejected, ...]
    failed: tuple[NotChecked, ...] = ()


def explain(run: Run, incidents: Sequence[Incident], whole: Curves | None = None) -> Explained:
    """Number the incidents (alarms first, each group by onset), find what moved with them, and rank their causes.

    ``whole`` are the curves of the run as it ended, where they were prepared before.
    """
    curves: dict[int | None, Curves] = {} if whole is None else {None: whole}
    ordered = sorted(incidents, key=lambda i: (i.event.severity is Severity.INFO, i.event.onset_step))
    numbered = tuple(replace(i, event=replace(i.event, id=f"E{n}")) for n, i in enumerate(ordered, 1))
    events: list[Event] = []
    rejected: list[Rejected] = []
    failed: dict[str, NotChecked] = {}
    seen: Counter[EventKind] = Counter()
    for incident in numbered:
        if incident.attempts not in curves:
            curves[incident.attempts] = Curves(run, incident.attempts)
        shared = curves[incident.attempts]
        view = View(run, shared, incident, numbered)
        kind, calm = incident.event.kind, incident.event.severity is Severity.INFO
        seen[kind] += calm
        ranking = _rank(view, failed) if not calm or seen[kind] <= MOST_INFO else NOTHING
        event = _with_lead(view)
        events.append(
            replace(
                event,
                related=related(view),
                batches=batches_at(run, event.onset_step, event.peak_step, incident.attempts),
                hypotheses=ranking.hypotheses,
                undetermined=ranking.undetermined and (not calm or bool(ranking.hypotheses)),
            )
        )
        rejected += () if calm else ranking.rejected
    return Explained(tuple(events), tuple(rejected), tuple(failed.values()))


def _with_lead(view: View) -> Event:
    """The event, beginning where the gradient norm left its level if that led the loss and was large: one incident, one onset."""
    grad, event = view.grad, _with_continuity(view)
    if event.severity is Severity.INFO or grad is None or grad.onset_step is None or not signs.precursor(view) or grad.factor < signs.SURGE:
        return event
    onset = min(event.onset_step, grad.onset_step)
    recovery = None if event.recovery_steps is None else event.recovery_steps + event.onset_step - onset
    return replace(event, onset_step=onset, recovery_steps=recovery)


def _with_continuity(view: View) -> Event:
    """A restart with what was continuous across it."""
    event = view.event
    if event.kind is not EventKind.RESTART:
        return event
    restart = view.across(event.onset_step)
    parts = [f"across it {restart.sentence}"] if restart.facts else []
    if view.edits:
        changed = ", ".join(f"{d.key} from {d.a} to {d.b}" for d in view.edits[:MOST_EDITS])
        parts.append(f"settings changed: {changed}" + (f" and {len(view.edits) - MOST_EDITS} more" if len(view.edits) > MOST_EDITS else ""))
    return replace(event, text="; ".join([event.text, *parts]))


NOTHING = Ranking((), (), False)
"""The ranking of an event that no rule was asked about."""


def _rank(view: View, failed: dict[str, NotChecked]) -> Ranking:
    """Rank the causes of one event: for an alarm every rule is asked, for an info event those that say they answer its kind."""
    examined = []
    calm = view.event.severity is Severity.INFO
    for rule in (*RULES, *plugins(CAUSES).loaded):
        info = rule.INFO  # type: ignore[attr-defined]
        if calm and view.event.kind not in getattr(info, "info", ()):
            continue
        try:
            found: Examination = rule.examine(view)  # type: ignore[attr-defined]
        except Exception as problem:  # noqa: BLE001 - one broken rule must not hide the others
            failed[info.id] = NotChecked(f"rule {info.id}", f"failed: {type(problem).__name__}: {problem}")
            continue
        examined.append(
            Examined(
                info.id,
                info.title,
                info.part,
                tuple(found.supporting),
                tuple(found.against),
                tuple(found.missing),
                found.remedy,
                info.replay,
                _manual(info.id),
                found.excluded,
            )
        )
    return rank(examined, view.event.kind, view.event.id)


def _manual(cause: str) -> str:
    try:
        return text(cause)
    except KeyError:
        return ""


def _without_rule() -> NotChecked:
    return NotChecked(
        f"{len(UNSEEN)} causes of the catalogue",
        "they cannot be told from logs by a rule yet; `forensics explain` lists them, with what to log",
    )


def _hashed(source: SourceInfo) -> SourceInfo:
    path = Path(source.path)
    if not path.is_file():
        return source
    with path.open("rb") as file:
        return replace(source, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def _series(run: Run, events: tuple[Event, ...]) -> dict[str, Series]:
    """Curves for the report: thinned, whole around the events."""
    named = {e.signal for e in events} | {r.signal for e in events for r in e.related}
    order = sorted((s for s in run.signals if (s.role in MEANINGFUL or s.name in named) and len(s)), key=lambda s: (s.name not in named, s.rank, s.name))
    out: dict[str, Series] = {}
    for signal in order[:DRAWN]:
        every = max(1.0, describe(signal).every or 1.0)
        reach = int(AROUND_POINTS * every)
        keep = [(e.onset_step - reach, (e.end_step or e.peak_step) + reach) for e in events if e.severity is not Severity.INFO]
        out[signal.name] = thin(signal.steps, signal.values, keep)
    return out
