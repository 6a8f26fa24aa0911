"""What the checkpoints beside a log say about one incident: rotten numbers, lost state, weights that never move.

A checkpoint of step N is the state before step N is taken. Everything here is a fact with the checkpoint that holds it;
causes decide what it means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from forensics.model.checkpoint import Fault, Inspected, TensorChange, TensorKind
from forensics.primitives.step_counts import CountReset, count_reset

SAVED_TOLERANCE = 1
"""Scripts save the step just taken or the next one to take: a checkpoint may be one step off."""

LEAST_STEPS = 10
"""Steps between two checkpoints in which every trained parameter moves (catalogue: ten)."""

ROUNDED = 0.5
"""Share of unchanged numbers from which updates are rounded away (catalogue: half)."""

COPY = re.compile(r"master|fp32", re.IGNORECASE)
"""Names of float32 copies of weights."""

FEW = 3
"""Tensors that one error of the hardware can reach before the next checkpoint; NaN in more of them is what a NaN does."""


@dataclass(frozen=True, slots=True)
class CheckpointFact:
    """A fact in words, with the step and path of the checkpoint that shows it, and the number."""

    text: str
    step: int | None
    source: str
    value: float | int | None = None


class CheckpointEvidence:
    """The checkpoints of a run as seen from a step. Empty where there are none; every question then answers None or nothing."""

    def __init__(self, checkpoints: Sequence[Inspected], anchor: int, restart: int | None = None) -> None:
        self.saved = tuple(sorted((c for c in checkpoints if c.step is not None), key=lambda c: c.step or 0))
        self.anchor = anchor
        self.restart = restart

    def __bool__(self) -> bool:
        return bool(self.saved)

    @property
    def before(self) -> Inspected | None:
        """The last one saved before the step was taken."""
        return next((c for c in reversed(self.saved) if c.step is not None and c.step <= self.anchor), None)

    @property
    def after(self) -> Inspected | None:
        """The first one saved after the step was taken."""
        return next((c for c in self.saved if c.step is not None and c.step > self.anchor), None)

    @property
    def last_good(self) -> Inspected | None:
        """The last one before the step whose numbers were read and are sound."""
        return next((c for c in reversed(self.saved) if c.step is not None and c.step <= self.anchor and c.good), None)

    @property
    def first_bad(self) -> Inspected | None:
        """The first one of the run whose numbers are not sound."""
        return next((c for c in self.saved if c.good is False), None)

    @property
    def loaded(self) -> Inspected | None:
        """The one that the restart loaded: saved at its first step."""
        if self.restart is None:
            return None
        near = [c for c in self.saved if c.step is not None and abs(c.step - self.restart) <= SAVED_TOLERANCE]
        return min(near, key=lambda c: abs((c.step or 0) - (self.restart or 0)), default=None)

    def rotten_when_loaded(self) -> tuple[CheckpointFact, ...]:
        """Rotten numbers in the checkpoint that was loaded, parameters first, with their values in the one before."""
        loaded = self.loaded
        return () if loaded is None else self._facts(loaded, _previous(self.saved, loaded))

    def rotten_since(self) -> tuple[CheckpointFact, ...]:
        """Rotten numbers in the first checkpoint after the step that the last one before it does not have.

        Many tensors with NaN are no such numbers: a NaN of any cause spreads to all of them.
        """
        before, after = self.before, self.after
        if before is None or after is None or before.stats is None:
            return ()
        known = {(f.name, f.kind) for f in before.faults}
        if sum(f.value is None and f.index is not None for f in after.faults) > FEW:
            return ()
        fresh = replace(after, faults=tuple(f for f in after.faults if (f.name, f.kind) not in known))
        return self._facts(fresh, before)

    def sound_around(self) -> bool | None:
        """Whether the checkpoints on either side are sound; None where one is missing or was not read."""
        if self.before is None or self.after is None or self.before.good is None or self.after.good is None:
            return None
        return self.before.good and self.after.good

    def _facts(self, one: Inspected, earlier: Inspected | None) -> tuple[CheckpointFact, ...]:
        facts = [_fact(one, fault, _jump(one, fault), earlier) for fault in one.faults if fault.index is not None]
        named = {f.name for f in one.faults}
        facts += [_jumped(one, c) for c in one.changes or () if c.jump is not None and c.name not in named]
        return tuple(facts)

    def count_reset(self) -> CountReset | None:
        """Where the optimizer's step count began again."""
        return count_reset(self.saved, self.restart)

    def count_went_on(self) -> CheckpointFact | None:
        """The step count is the same distance from the step on both sides of the restart: the optimizer's state was loaded."""
        if self.restart is None or self.count_reset() is not None:
            return None
        earlier = [c for c in self.saved if c.step is not None and c.step <= self.restart and c.checkpoint.optimizer_steps]
        later = [c for c in self.saved if c.step is not None and c.step > self.restart and c.checkpoint.optimizer_steps]
        if not earlier or not later:
            return None
        a, b = earlier[-1].checkpoint, later[0].checkpoint
        assert a.optimizer_steps is not None
        assert b.optimizer_steps is not None
        if (b.step or 0) - (a.step or 0) != b.optimizer_steps[1] - a.optimizer_steps[1]:
            return None
        text = f"the optimizer's step count went on across the resume: {a.optimizer_steps[1]} at step {a.step}, {b.optimizer_steps[1]} at step {b.step}"
        return CheckpointFact(text, b.step, b.path, b.optimizer_steps[1])

    def without_optimizer(self) -> CheckpointFact | None:
        """The checkpoint that was loaded holds no optimizer, although others of the run do."""
        loaded = self.loaded
        if loaded is None or loaded.checkpoint.param_groups or loaded.checkpoint.damage or not any(c.checkpoint.param_groups for c in self.saved):
            return None
        text = f"the checkpoint of step {loaded.step} holds no state of the optimizer; others of the run do"
        return CheckpointFact(text, loaded.step, loaded.checkpoint.path)

    @property
    def pair(self) -> Inspected | None:
        """The checkpoint after the step, else before it, that was compared with one at least LEAST_STEPS earlier."""
        for one in (self.after, self.before):
            if one is not None and one.changes is not None and one.since is not None and (one.step or 0) - one.since >= LEAST_STEPS:
                return one
        return None

    def still(self) -> Stillness | None:
        """Trained parameters around the step, and those that are equal to the last bit; None where no two checkpoints tell."""
        pair = self.pair
        if pair is None or pair.changes is None or pair.since is None or pair.stats is None:
            return None
        trained = {n for group in pair.checkpoint.param_groups if (group.lr or 0.0) > 0 for n in group.params}
        trained = {n for n in trained if (m := pair.stats.get((n, TensorKind.EXP_AVG))) is not None and m.norm > 0}
        moved = [c for c in pair.changes if c.name in trained]
        if not moved:
            return None
        return Stillness(pair, tuple(c.name for c in moved if c.still), len(moved))

    def rounded_away(self) -> CheckpointFact | None:
        """Most numbers of half-precision weights without a float32 copy are unchanged, although their tensors moved."""
        pair = self.pair
        if pair is None or pair.changes is None:
            return None
        half = {t.name for t in pair.checkpoint.tensors if t.kind is TensorKind.PARAM and t.dtype in {"bfloat16", "float16"}}
        copied = any(t.kind is TensorKind.OTHER and t.dtype == "float32" and COPY.search(t.name) for t in pair.checkpoint.tensors)
        moved = [c for c in pair.changes if c.name in half and not c.still]
        elements = sum(c.elements for c in moved)
        if copied or not elements:
            return None
        share = sum(c.unchanged for c in moved) / elements
        text = f"{share:.0%} of the numbers of {len(moved)} half-precision tensors are unchanged between steps {pair.since} and {pair.step}"
        return CheckpointFact(f"{text}, and there is no float32 copy of them", pair.step, pair.checkpoint.path, share) if share > ROUNDED else None

    def lr_in_checkpoint(self) -> float | None:
        """The learning rate of the first group in the checkpoint that was loaded."""
        loaded = self.loaded
        return None if loaded is None or not loaded.checkpoint.param_groups else loaded.checkpoint.param_groups[0].lr

    def scale_in_checkpoint(self) -> float | None:
        """The loss scale in the checkpoint that was loaded."""
        loaded = self.loaded
        held = None if loaded is None or loaded.checkpoint.scaler is None else loaded.checkpoint.scaler
        value = None if held is None else held.get("scale", held.get("cur_scale"))
        return float(value) if isinstance(value, (int, float)) else None


@dataclass(frozen=True, slots=True)
class Stillness:
    """Which of ``trained`` parameters did not move between the checkpoint and the one of step ``pair.since``."""

    pair: Inspected
    names: tuple[str, ...]
    trained: int

    @property
    def fact(self) -> CheckpointFact:
        """The fact in words."""
        some = ", ".join(self.names[:5]) + (f" and {len(self.names) - 5} more" if len(self.names) > 5 else "")
        which = f"all {self.trained}" if len(self.names) == self.trained else f"{len(self.names)} of {self.trained}"
        text = f"{which} parameters that have gradients are equal to the last bit at steps {self.pair.since} and {self.pair.step}: {some}"
        return CheckpointFact(text, self.pair.step, self.pair.checkpoint.path, len(self.names))


def _previous(saved: Sequence[Inspected], one: Inspected) -> Inspected | None:
    at = saved.index(one)
    return saved[at - 1] if at else None


def _jump(one: Inspected, fault: Fault) -> TensorChange | None:
    found = next((c for c in one.changes or () if c.name == fault.name and c.kind is fault.kind), None)
    return found if found is not None and found.largest_at == fault.index else None


def _fact(one: Inspected, fault: Fault, change: TensorChange | None, earlier: Inspected | None) -> CheckpointFact:
    text = f"the checkpoint of step {one.step} holds a rotten number: {fault.text}"
    if change is not None and change.was is not None:
        text += f"; it was {change.was:.4g} at step {one.since}"
    elif earlier is not None and earlier.good:
        text += f"; the one of step {earlier.step} is sound"
    return CheckpointFact(text, one.step, f"{one.checkpoint.path}#{_key(one, fault.name, fault.kind)}", fault.value)


def _jumped(one: Inspected, change: TensorChange) -> CheckpointFact:
    assert change.jump is not None
    jump = change.jump
    text = f"{change.name}: element {list(jump.index)} went from {change.was:.4g} at step {one.since} to {jump.value:.4g} at step {one.step}"
    text += f", every other by {jump.usual:.3g} or less" + (f"; that is bit {jump.bit} flipped" if jump.bit is not None else "")
    return CheckpointFact(text, one.step, f"{one.checkpoint.path}#{_key(one, change.name, change.kind)}", jump.value)


def _key(one: Inspected, name: str, kind: TensorKind) -> str:
    tensor = one.checkpoint.tensor(name, kind)
    return name if tensor is None else tensor.key
