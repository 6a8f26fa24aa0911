"""The optimizer's own step count beside the steps of the run: where it began again, the optimizer's state was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.model.checkpoint import Inspected

SAME_COUNT = 2
"""Steps by which a count that began again may differ from the distance to the restart."""


@dataclass(frozen=True, slots=True)
class CountReset:
    """The optimizer's own step count began again.

    ``began`` is the step at which it stood at zero; ``before`` and ``after`` are the checkpoints on either side, the first
    None where only the second is there; ``count`` is that of ``after``.
    """

    began: int
    before: Inspected | None
    after: Inspected
    count: int

    @property
    def text(self) -> str:
        """The fact in words."""
        text = f"the optimizer's step count began again: it is {self.count} in the checkpoint of step {self.after.step}"
        if self.before is not None and self.before.checkpoint.optimizer_steps is not None:
            text += f", and was {self.before.checkpoint.optimizer_steps[1]} in that of step {self.before.step}"
        return text


def count_reset(saved: Sequence[Inspected], restart: int | None = None) -> CountReset | None:
    """The first place at which the count began again. ``saved`` in order of steps.

    A count that is lower than in the checkpoint before began again whatever else is known; a single checkpoint tells only
    with the step of a ``restart``.
    """
    before: Inspected | None = None
    for one in saved:
        counts = one.checkpoint.optimizer_steps
        if counts is None or one.step is None:
            continue
        began = one.step - counts[1]
        earlier = None if before is None else before.checkpoint.optimizer_steps
        if before is not None and earlier is not None:
            if counts[1] < earlier[1] and one.step > (before.step or 0):
                return CountReset(began, before, one, counts[1])
        elif restart is not None and 0 < restart <= one.step and abs(began - restart) <= SAME_COUNT and counts[1] > 0:
            return CountReset(began, None, one, counts[1])
        before = one
    return None
