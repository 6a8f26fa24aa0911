"""Advice in sentences: where to go back to, what to leave out, what to log. For the case and for ``forensics advise``."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.advice.checkpoints import Judge, Saved, go_back_to
from forensics.advice.logging import logging_advice, sentence
from forensics.advice.skip import batches_to_skip, union
from forensics.model import Case, Severity

MOST = 8
"""Alarms that the case gives a sentence each."""


def going_back(case: Case, saved: Sequence[Saved] = (), judge: Judge | None = None) -> tuple[str, ...]:
    """One sentence per alarm: the checkpoint, and why that one. Paths are as found."""
    out = []
    for event in case.events:
        if event.severity is Severity.INFO:
            continue
        back = go_back_to(case, event, saved, judge)
        if back is None:
            continue
        where = f"checkpoint {back.path} (step {back.step:,})" if back.path else f"a checkpoint of step {back.step:,} or before"
        out.append(f"{event.id}, at step {event.onset_step:,}: go back to {where}; {back.why}.")
    return tuple(out)


def leaving_out(case: Case) -> tuple[str, ...]:
    """The batches to skip, in one sentence; nothing where no event is answered by that."""
    skips = batches_to_skip(case)
    steps = ", ".join(f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in union(skips))
    return (f"Leave out the batches of steps {steps} (`forensics skip` writes them for your framework).",) if skips else ()


def advice(case: Case) -> tuple[str, ...]:
    """All of it for the case itself, without looking for checkpoints; nothing for a run in which nothing went wrong."""
    back = going_back(case)
    if not back:
        return ()
    if len(back) > MOST:
        back = (*back[:MOST], f"And {len(back) - MOST} more alarms: `forensics advise` has them.")
    logging = logging_advice(case)
    told = sentence(logging)
    more = (f"For next time ({logging.framework.value}): {told} (`forensics advise` writes it as code).",) if told else ()
    return (*back, *leaving_out(case), *more)
