"""What the runs that went wrong have in common: causes, batches, steps, settings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from forensics.correlate.batches import at_least
from forensics.model.fleet import CommonCause, Fleet, FleetEvent, FleetRun, SharedBatch, SharedStep, TellingSetting
from forensics.version import __version__

CERTAIN = 0.05
"""Chance below which something that runs share is told."""

NEAR = 2
"""Steps between two onsets at the same step."""

SUDDEN = frozenset({"spike", "slow_spike", "level_shift", "non_finite", "grad_norm_surge", "divergence"})
"""Kinds whose step means something."""

MOST_VALUES = 12
"""A setting with more values than this is a name or a seed."""


def summarise(path: str, runs: Sequence[FleetRun]) -> Fleet:
    """The table with everything that can be said about all runs together."""
    read = [r for r in runs if not r.problem]
    causes, batches, steps, settings = _causes(read), _batches(read), _steps(read), _settings(read)
    return Fleet(
        tool_version=__version__,
        path=path,
        verdict=_verdict(runs, causes, batches, steps, settings),
        runs=tuple(runs),
        causes=causes,
        batches=batches,
        steps=steps,
        settings=settings,
        not_checked=_not_checked(read),
    )


def _causes(runs: Sequence[FleetRun]) -> tuple[CommonCause, ...]:
    """First causes by the number of runs they were named in."""
    named: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for cause in dict.fromkeys(e.cause for e in run.events if e.cause is not None):
            named[cause].append(run.name)
    return tuple(CommonCause(c, tuple(r)) for c, r in sorted(named.items(), key=lambda item: (-len(item[1]), item[0])))


def _batches(runs: Sequence[FleetRun]) -> tuple[SharedBatch, ...]:
    """Batches at which at least two runs broke, where the ids are more than a counter."""
    told = [r for r in runs if not r.counted_ids]
    at: dict[object, list[tuple[FleetRun, FleetEvent]]] = defaultdict(list)
    for run in told:
        for event in {e.batch_id: e for e in run.events if e.batch_id is not None and e.kind in SUDDEN}.values():
            at[event.batch_id].append((run, event))
    rates = [_rate(r) for r in told]
    distinct = max((r.steps_logged for r in told), default=1)
    found = []
    for hits in at.values():
        p = _chance(len(hits), rates, distinct)
        if len(hits) >= 2 and p < CERTAIN:
            batch = hits[0][1].batch_id
            assert batch is not None
            found.append(SharedBatch(batch, tuple(r.name for r, _ in hits), tuple(e.onset_step for _, e in hits), p))
    return tuple(sorted(found, key=lambda b: (-len(b.runs), b.p_value, str(b.batch_id))))


def _steps(runs: Sequence[FleetRun]) -> tuple[SharedStep, ...]:
    """Steps at which at least two runs broke."""
    onsets = sorted((e.onset_step, n) for n, r in enumerate(runs) for e in r.events if e.kind in SUDDEN)
    found: list[SharedStep] = []
    i = 0
    while i < len(onsets):
        j = i
        while j + 1 < len(onsets) and onsets[j + 1][0] - onsets[i][0] <= NEAR:
            j += 1
        who = sorted({n for _, n in onsets[i : j + 1]})
        there = [r for r in runs if (r.first_step or 0) <= onsets[i][0] <= (r.last_step or 0)]
        rates = [min(1.0, _rate(r) * (2 * NEAR + 1)) for r in there]
        p = _chance(len(who), rates, max(1, max(r.steps_logged for r in there) // (2 * NEAR + 1)))
        if len(who) >= 2 and p < CERTAIN:
            found.append(SharedStep(onsets[i][0], tuple(runs[n].name for n in who), p))
        i = j + 1
    return tuple(sorted(found, key=lambda s: (-len(s.runs), s.p_value, s.step)))


def _rate(run: FleetRun) -> float:
    """Share of the logged steps at which an alarm of this run began."""
    return min(1.0, sum(e.kind in SUDDEN for e in run.events) / max(run.steps_logged, 1))


def _chance(hits: int, rates: Sequence[float], places: int) -> float:
    """Chance that at least ``hits`` runs break at one of ``places`` places, if each breaks anywhere at its own rate."""
    spread = np.zeros(len(rates) + 1)
    spread[0] = 1.0
    for rate in rates:
        spread[1:] = spread[1:] * (1 - rate) + spread[:-1] * rate
        spread[0] *= 1 - rate
    return min(1.0, places * float(spread[hits:].sum()))


def _settings(runs: Sequence[FleetRun]) -> tuple[TellingSetting, ...]:
    """Values of settings that go with trouble, by Fisher's exact test, corrected for the number of tests."""
    bad = [bool(r.events) for r in runs]
    tests: list[tuple[str, object, list[bool]]] = []
    for key in sorted({k for r in runs for k in r.config}):
        values = [_plain(r.config, key) for r in runs]
        kinds = set(values)
        if 2 <= len(kinds) <= min(MOST_VALUES, max(2, len(runs) // 2)):
            tests += [(key, value, [v == value for v in values]) for value in sorted(kinds, key=str)]
    found = []
    for key, value, having in tests:
        with_it, bad_with = sum(having), sum(b and h for b, h in zip(bad, having, strict=True))
        p = min(1.0, at_least(bad_with, len(runs), with_it, sum(bad)) * len(tests))
        if bad_with and p < CERTAIN:
            found.append(TellingSetting(key, value, bad_with, with_it, sum(bad) - bad_with, len(runs) - with_it, p))
    return tuple(sorted(found, key=lambda s: (s.p_value, s.key)))


def _plain(config: Mapping[str, object], key: str) -> object:
    value = config.get(key)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _verdict(
    runs: Sequence[FleetRun],
    causes: Sequence[CommonCause],
    batches: Sequence[SharedBatch],
    steps: Sequence[SharedStep],
    settings: Sequence[TellingSetting],
) -> str:
    bad = sum(bool(r.events) for r in runs)
    failed = sum(bool(r.problem) for r in runs)
    text = f"{bad} of {len(runs)} runs went wrong" + (f", {failed} could not be read" if failed else "")
    if batches:
        text += f"; batch {batches[0].batch_id} stood at an event of {len(batches[0].runs)} of them: look into its data"
    elif steps:
        text += f"; {len(steps[0].runs)} of them at step {steps[0].step:,}: something tied to that step or its batch"
    if settings:
        s = settings[0]
        text += f"; {s.bad_with} of {s.with_it} with {s.key} = {s.value} went wrong, {s.bad_without} of {s.without_it} without"
    if causes and len(causes[0].runs) > 1:
        text += f"; most often named: {causes[0].cause} ({len(causes[0].runs)} runs)"
    return text + "."


def _not_checked(runs: Sequence[FleetRun]) -> tuple[str, ...]:
    out = []
    counted = sum(r.counted_ids for r in runs)
    if counted:
        out.append(f"shared batches of {counted} runs: their batch ids only count steps")
    without = sum(not r.config for r in runs)
    if without:
        out.append(f"settings of {without} runs: none are logged")
    return tuple(out)
