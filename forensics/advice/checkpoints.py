"""Which checkpoint to go back to, and why that one.

The step of a checkpoint is read off its name, the way trainers write it. A checkpoint is clean if it was written before anything
of the incident began; how long before depends on the cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forensics.advice.skip import STEPS_BEFORE, batches_to_skip
from forensics.model import Case, Event, Severity

SLOW = frozenset(
    {
        *("lr_too_high", "lr_decay_too_slow", "attention_logit_growth", "residual_growth", "output_logit_divergence", "adam_correlated_updates"),
        *("weight_decay_misapplied", "moe_router_logit_blowup", "rl_entropy_collapse", "rl_kl_blowup", "rl_reward_hacking", "overfitting"),
    }
)
"""Causes that were at work long before the event: the state of the last steps before it is already poor."""

SLOW_STEPS, SLOW_SHARE = 1000, 0.1
"""How long before, for those: about 1000 steps, in short runs a tenth of what was trained."""

RESUME = frozenset({"resume_optimizer_lost", "resume_scheduler_lost", "resume_scaler_reset", "resume_data_or_rng_lost", "data_repeat_after_resume"})
"""Causes for which the checkpoint was good and its loading was not."""

_NAMES = (
    re.compile(r"(?:^|[^a-z])(?:checkpoint|ckpt|global_?step|step|steps|iter|iteration|it|model|state|weights)[-_=]?0*(\d{1,12})(?:\D|$)", re.IGNORECASE),
    re.compile(r"^0*(\d{1,12})(?:\.(?:pt|pth|ckpt|bin|safetensors|npz))?$", re.IGNORECASE),
)
"""checkpoint-500, iter_0001000, global_step1000, epoch=3-step=1200.ckpt, step-00100.pt, 1200.pt."""

_FILES = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npz", ".distcp")

MOST_ENTRIES = 20_000
"""Names looked at below a folder."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint on disk and the step it was written at."""

    path: str
    step: int


@dataclass(frozen=True, slots=True)
class GoBack:
    """``path`` null: none was found that is clean; any of step ``step`` or before will do."""

    event: str
    step: int
    path: str | None
    why: str


def find_saved(folder: Path) -> tuple[Saved, ...]:
    """Checkpoints below a folder by their names, ascending in step; nothing is opened."""
    found: dict[int, Saved] = {}
    for number, path in enumerate(sorted(_entries(folder))):
        if number >= MOST_ENTRIES:
            break
        step = step_of(path.name, is_folder=path.is_dir())
        if step is not None:
            found.setdefault(step, Saved(str(path), step))
    return tuple(found[s] for s in sorted(found))


def _entries(folder: Path) -> Iterable[Path]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink() and re.search(r"check|ckpt|model|save|output|weights", path.name, re.IGNORECASE):
            yield from path.iterdir()


def step_of(name: str, *, is_folder: bool = False) -> int | None:
    """The step in a checkpoint's name; None where the name is no checkpoint's."""
    if not is_folder and not name.lower().endswith(_FILES):
        return None
    by_name = [int(m.group(1)) for m in _NAMES[0].finditer(name)]
    if by_name:
        return by_name[-1]
    plain = _NAMES[1].match(name) if not is_folder else None
    return int(plain.group(1)) if plain else None


Judge = Callable[[Saved], str | None]
"""Looks into a checkpoint and says what is wrong with its numbers; None where nothing is."""


def go_back_to(case: Case, event: Event, saved: Sequence[Saved] = (), judge: Judge | None = None) -> GoBack | None:
    """The latest checkpoint that nothing of the event has touched; None for an event that needs no going back.

    ``judge`` is asked about those that come into question, the latest first; one with a fault is passed over.
    """
    limit = _limit(case, event)
    return None if limit is None else _choose(event, *limit, saved, judge)


def _limit(case: Case, event: Event) -> tuple[int, str] | None:
    """The last step at which nothing of the event had happened yet, and why that one."""
    if event.severity is Severity.INFO:
        return None
    cause = event.hypotheses[0].cause if event.hypotheses and not event.undetermined else None
    first = case.run.first_step or 0
    if cause in RESUME:
        before = next((a.resumed_from for a in case.run.attempts if a.resumed_from is not None and a.first_step <= event.onset_step), None)
        limit = event.onset_step - 1 if before is None else before
        return limit, "the checkpoint itself is good, what was lost is lost in loading it: load it again with all of its state"
    if cause in SLOW:
        limit = event.onset_step - min(SLOW_STEPS, int(SLOW_SHARE * (event.onset_step - first)) + 1)
        return limit, "the cause was at work long before the event, so the last steps before it are spoiled too"
    skips = batches_to_skip(case, event.id) if event.hypotheses else ()
    if skips and skips[0].exact:
        return skips[0].go_back_to, "nothing before the bad batch is touched by it"
    if cause is not None:
        return event.onset_step - 1, "no signal of this event had left its level yet"
    return event.onset_step - STEPS_BEFORE, "the cause is not known, so about 100 steps are left for what did not show"


def _choose(event: Event, limit: int, why: str, saved: Sequence[Saved], judge: Judge | None) -> GoBack:
    limit = max(limit, 0)
    passed = ""
    for candidate in reversed([s for s in saved if s.step <= limit]):
        fault = None if judge is None else judge(candidate)
        if fault is None:
            read = "" if judge is None else "; its numbers were read and are in order"
            return GoBack(event.id, candidate.step, candidate.path, f"it is the last one of step {limit} or before{read}: {why}{passed}")
        passed = passed or f" (the one of step {candidate.step} is damaged: {fault})"
    if saved:
        return GoBack(event.id, limit, None, f"of the checkpoints found none is clean and of step {limit} or before: {why}{passed}")
    return GoBack(event.id, limit, None, why)
