"""Two runs with their cases in, a comparison out."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.comparison.partings import data_order, partings
from forensics.comparison.same_step import coincidence, same_steps
from forensics.correlate.differences import differences
from forensics.model import Absent, Case, Run
from forensics.model.comparison import Comparison, DataOrder, Difference, Parting, SameStep, Side
from forensics.version import __version__
from forensics.vocabulary import Role

NAMED = 3
"""Settings named in the verdict."""


def compare(run_a: Run, case_a: Case, run_b: Run, case_b: Case) -> Comparison:
    """Compare two runs step by step. Everything is about steps that both runs logged; nothing is shifted or interpolated."""
    shared = _shared(run_a, run_b)
    order, why = data_order(run_a, run_b)
    parted = partings(run_a, run_b)
    settings, same = differences(run_a.config, run_b.config)
    every = max(_every(case_a), _every(case_b))
    events = (case_a.events, case_b.events)
    steps = same_steps((run_a, run_b), events, order, every)
    both = sum(s.a_event is not None and s.b_event is not None for s in steps)
    return Comparison(
        tool_version=__version__,
        a=_side(run_a, case_a),
        b=_side(run_b, case_b),
        verdict=verdict(parted, settings if run_a.config and run_b.config else None, steps, shared),
        shared_steps=shared,
        data_order=order,
        data_order_why=why,
        partings=parted,
        settings=settings,
        same_settings=same,
        same_steps=steps,
        chance=coincidence(events, both, shared[1] - shared[0] + 1, every) if shared is not None else None,
        not_checked=_not_checked(run_a, run_b, order),
    )


def verdict(
    parted: Sequence[Parting],
    settings: Sequence[Difference] | None,
    steps: Sequence[SameStep],
    shared: tuple[int, int] | None,
) -> str:
    """Few sentences: do the runs part, where, what differs, and what happened to both. ``settings`` None: not logged by both."""
    if shared is None:
        return "The runs have no logged step in common: there is nothing to compare step by step."
    text = _where(parted, settings)
    both = [s for s in steps if s.a_event is not None and s.b_event is not None]
    if both:
        text += f" At step {both[0].step:,} {both[0].reading}" + (f"; {len(both) - 1} more steps like it." if len(both) > 1 else ".")
    elif steps:
        text += f" At step {steps[0].step:,} only run {'A' if steps[0].a_event else 'B'} broke: {steps[0].reading}."
    return text


def _where(parted: Sequence[Parting], settings: Sequence[Difference] | None) -> str:
    apart = [p for p in parted if p.apart_from is not None]
    what = _what(settings)
    loss = next((p for p in parted if p.role == Role.LOSS), None)
    if loss is None and not apart:
        return "No loss is logged by both runs." + what
    if not apart:
        same = loss is not None and loss.first_difference is None
        return ("The losses are equal to the last digit." if same else "The runs never part further than their noise explains.") + what
    first = min(apart, key=lambda p: (p.apart_from, p.role != Role.LR))
    text = f"The runs part at step {first.apart_from:,} in {first.signal}{_levels(first)}"
    if loss is not None and loss is not first and loss.apart_from is not None:
        text += f"; the losses at step {loss.apart_from:,}{_levels(loss)}"
    elif loss is not None and loss is not first:
        text += "; the losses stay together"
    return text + "." + what


def _levels(parting: Parting) -> str:
    return f" (A {parting.a:.4g}, B {parting.b:.4g})" if parting.a is not None and parting.b is not None else ""


def _what(settings: Sequence[Difference] | None) -> str:
    if settings is None:
        return " Settings are not logged by both runs, so what differs is unknown."
    training = [d for d in settings if not d.bookkeeping]
    if not training:
        return " No setting that trains anything differs, as far as logged."
    shown = ", ".join(f"{d.key} {_short(d.a)} against {_short(d.b)}" for d in training[:NAMED])
    more = len(training) - NAMED
    return f" What differs: {shown}" + (f", and {more} more." if more > 0 else ".")


def _short(value: object) -> str:
    text = "not logged" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _side(run: Run, case: Case) -> Side:
    return Side(run.path, run.name, case.run.first_step, case.run.last_step, case.verdict)


def _shared(a: Run, b: Run) -> tuple[int, int] | None:
    extents = []
    for run in (a, b):
        steps = [s.steps for s in run.signals if len(s)]
        if not steps:
            return None
        extents.append((min(int(s.min()) for s in steps), max(int(s.max()) for s in steps)))
    first, last = max(e[0] for e in extents), min(e[1] for e in extents)
    return (first, last) if first <= last else None


def _every(case: Case) -> float:
    return next((s.every for s in case.signals if s.role == Role.LOSS and s.primary and s.every), 1.0)


def _not_checked(a: Run, b: Run, order: DataOrder) -> tuple[str, ...]:
    out = [f"run {name} logs no settings: what differs is unknown" for name, run in (("A", a), ("B", b)) if not run.config]
    for role in (Role.LOSS, Role.GRAD_NORM, Role.LR):
        missing = [name for name, run in (("A", a), ("B", b)) if isinstance(run.signal(role), Absent)]
        if missing:
            out.append(f"{role.value} is not logged by run {' and '.join(missing)}")
    if order is DataOrder.UNKNOWN:
        out.append("whether both runs saw the same batches: log batch ids to know")
    return tuple(out)
