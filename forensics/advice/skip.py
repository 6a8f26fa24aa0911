"""Which batches to leave out when the run is done again, and from which step to go back.

Only a fault of the data is answered by skipping. Where the batches are known they alone are left out; where a batch only hurt
because of the state it met, the published practice is followed: go back about 100 steps and skip 200 to 500 batches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from forensics.model import Case, Event, EventKind, Hypothesis, Severity

SCHEMA = "forensics-skip/1"

EXACT = frozenset({"bad_batch_outlier", "nan_in_input", "repeated_ngram_docs", "loss_mask_error", "long_sequence_outlier", "tokenizer_vocab_mismatch"})
"""Causes that end with the batches that held them."""

POCKET = "degenerate_data_pocket"
"""A stretch of bad data: all of it is left out."""

INTERACTION = "batch_state_interaction"
"""A batch that hurts one state and not another: a wide range, because which batch it was is not known."""

STEPS_BEFORE = 100
"""Steps before the onset to go back to (PaLM: roughly 100)."""

FEWEST, MOST = 200, 500
"""Batches skipped around an event whose batch is not known (PaLM: roughly 200 to 500)."""

PLAUSIBLE = 0.2
"""Score from which a data cause is worth skipping for, where it is not the first."""

MOST_EXACT = 64
"""More single batches than this are no list of culprits but a stretch."""

MOST_LISTED = 100_000
"""Steps that are written one by one; no command line and no file of indices should hold more."""

REPLAYED = {"data": "exact", "batch_state": "wide"}
"""Verdicts of a replay that are answered by skipping; every other verdict is not."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Steps to leave out for one event: ``ranges`` are (first, last), both included, ascending, in logged step numbers.

    ``batch_ids`` where they are logged and the culprits are known; ``go_back_to`` the last step whose checkpoint is still clean;
    ``why`` a sentence for a person.
    """

    event: str
    cause: str | None
    ranges: tuple[tuple[int, int], ...]
    batch_ids: tuple[int | float | str, ...]
    exact: bool
    go_back_to: int
    why: str


def batches_to_skip(case: Case, event: str | None = None) -> tuple[Skip, ...]:
    """What to skip for every alarm that the data explain, or for one event that is named.

    Raises KeyError for an event that the case does not have. A named event is answered even where the data are not the best
    explanation; ``why`` says so.
    """
    if event is not None and event not in {e.id for e in case.events}:
        raise KeyError(event)
    chosen = [e for e in case.events if (e.id == event if event is not None else e.severity is not Severity.INFO)]
    again = _recurring(case)
    found = (_skip(case, e, again, asked=event is not None) for e in chosen)
    return tuple(s for s in found if s is not None)


def _skip(case: Case, event: Event, again: frozenset[object], *, asked: bool) -> Skip | None:
    cause = _data_cause(event)
    how = _how(event, cause)
    if how is None and not asked:
        return None
    if how == "exact":
        return _exact(case, event, cause, again)
    if how == "pocket":
        last = event.end_step if event.end_step is not None else event.peak_step
        return _wide(case, event, cause, (event.onset_step, last), f"the bad stretch of data lasts from step {event.onset_step} to {last}")
    last = max(event.onset_step + FEWEST - STEPS_BEFORE - 1, event.peak_step + STEPS_BEFORE)
    first = event.onset_step - STEPS_BEFORE
    why = "which batch it was is not known, so the published practice is followed: back about 100 steps, 200 to 500 batches left out"
    if how is None:
        why = "the data are not the best explanation of this event, so skipping may not help; " + why
    return _wide(case, event, cause, (first, min(last, first + MOST - 1)), why)


def _how(event: Event, cause: Hypothesis | None) -> str | None:
    """exact, pocket, wide, or None where skipping is no answer. A replay outweighs the logs."""
    if event.replay is not None:
        verdict = event.replay.get("verdict")
        if verdict not in {None, "none", "undetermined", "not_reproduced"}:
            return REPLAYED.get(str(verdict))
    if cause is None:
        return None
    first = event.hypotheses[0] is cause and not event.undetermined
    if cause.cause == POCKET:
        return "pocket" if first else "wide"
    return "exact" if cause.cause in EXACT and first else "wide"


def _data_cause(event: Event) -> Hypothesis | None:
    """The best data cause, if it is the first explanation or the event is undetermined and it may well be it."""
    for place, hypothesis in enumerate(event.hypotheses):
        if hypothesis.cause in EXACT or hypothesis.cause in {POCKET, INTERACTION}:
            return hypothesis if place == 0 or (event.undetermined and hypothesis.score >= PLAUSIBLE) else None
        if not event.undetermined:
            return None
    return None


def _recurring(case: Case) -> frozenset[object]:
    """Batches that stood at the onset of several alarms."""
    at_onset = Counter(b.batch_id for e in case.events if e.severity is not Severity.INFO for b in e.batches if b.step == e.onset_step)
    return frozenset(batch for batch, times in at_onset.items() if times > 1)


def _exact(case: Case, event: Event, cause: Hypothesis | None, again: frozenset[object]) -> Skip:
    every = _every(case, event)
    culprits = [b for b in event.batches if b.batch_id in again]
    if culprits:
        first, last = min(b.step for b in culprits), max(b.step for b in culprits)
        why = f"batch {', '.join(str(b.batch_id) for b in culprits)} stood at several events of this run"
    else:
        itself = every == 1 and event.kind is EventKind.NON_FINITE and event.recovered
        first, last = _from_start(case, event.onset_step if itself else event.onset_step - every), max(event.peak_step, event.onset_step)
        before = "" if itself else ", and what came before it, whose update may have done it"
        why = f"the batches of step{'s' if last > first else ''} {first}{f' to {last}' if last > first else ''}: those of the event{before}"
        culprits = [b for b in event.batches if first <= b.step <= last]
    if last - first >= MOST_EXACT:
        return _wide(case, event, cause, (first, last), f"the event lasted from step {event.onset_step} to {last}")
    ids = tuple(dict.fromkeys(b.batch_id for b in culprits))
    first = _from_start(case, first)
    return Skip(event.id, None if cause is None else cause.cause, ((first, last),), ids, True, first - 1, why)


def _wide(case: Case, event: Event, cause: Hypothesis | None, span: tuple[int, int], why: str) -> Skip:
    first, last = _from_start(case, span[0]), span[1]
    return Skip(event.id, None if cause is None else cause.cause, ((first, max(first, last)),), (), False, first - 1, why)


def _from_start(case: Case, step: int) -> int:
    return max(step, 0 if case.run.first_step is None else case.run.first_step)


def _every(case: Case, event: Event) -> int:
    """Steps between logged ones: the culprit may be any of those since the last logged step."""
    every = next((s.every for s in case.signals if s.name == event.signal), None)
    return max(1, round(every or 1))


def union(skips: Iterable[Skip]) -> tuple[tuple[int, int], ...]:
    """All ranges, joined where they touch, ascending."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(r for s in skips for r in s.ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


def _steps(skips: Sequence[Skip]) -> list[int]:
    total = sum(last - first + 1 for first, last in union(skips))
    if total > MOST_LISTED:
        raise ValueError(f"{total:,} steps are too many to list one by one; use --format range")
    return [step for first, last in union(skips) for step in range(first, last + 1)]


def megatron(skips: Sequence[Skip]) -> str:
    """The option of Megatron-LM. Its iterations count from 1, as its log prints them."""
    return "--iterations-to-skip " + " ".join(map(str, _steps(skips)))


def step_range(skips: Sequence[Skip]) -> str:
    """``first-last`` for each stretch, as the option --skip-train-iteration-range of several Megatron forks takes them."""
    return " ".join(f"{first}-{last}" for first, last in union(skips))


def lightning(skips: Sequence[Skip]) -> str:
    """The content of skip_batches.json, the list of batch indices that Lightning's SpikeDetection writes."""
    return json.dumps(_steps(skips), indent=4)


def plain(skips: Sequence[Skip]) -> str:
    """Everything, for a data loader of one's own."""
    ids = list(dict.fromkeys(i for s in skips for i in s.batch_ids))
    every = [
        {
            "event": s.event,
            "cause": s.cause,
            "ranges": [list(r) for r in s.ranges],
            "batch_ids": list(s.batch_ids),
            "exact": s.exact,
            "go_back_to": s.go_back_to,
            "why": s.why,
        }
        for s in skips
    ]
    whole = {"schema": SCHEMA, "ranges": [list(r) for r in union(skips)], "batch_ids": ids, "skips": every}
    return json.dumps(whole, indent=1, allow_nan=False)


FORMATS: Mapping[str, Callable[[Sequence[Skip]], str]] = {"megatron": megatron, "range": step_range, "lightning": lightning, "json": plain}
