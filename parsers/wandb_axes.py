"""Over which step the metrics of a W&B run are drawn.

Every ``log`` call counts ``_step`` up, whatever the training step is. Runs that log another step say so by
``define_metric``, or just log a column that everybody knows to be the optimizer step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from forensics.model import IntArray
from forensics.parsers.wandb_history import Column
from forensics.parsers.wandb_wire import Metric
from forensics.vocabulary import Role, classify

LOG_CALL = "_step"
"""The axis of a run that names no other: the counter of log calls."""

WELL_KNOWN = ("train/global_step", "trainer/global_step", "global_step")
"""Columns that are the optimizer step by convention (Hugging Face Trainer, Lightning, hand-written loops)."""

MOSTLY = 0.5
"""Share of rows that must carry a well-known step before rows without it are placed by it, too: one value logged with a
summary at the end is no axis."""

MAX_GLOBS = 1_000
"""Globs tried per name; a run defines a handful."""


@dataclass(slots=True)
class Axes:
    """Finds the axis of a name. ``log_steps`` is the log-call axis, one step per row, shape (rows,)."""

    log_steps: IntArray
    metrics: Sequence[Metric]
    columns: dict[str, Column]
    _known: dict[str, IntArray | None] = field(default_factory=dict)
    _common: str = ""

    def __post_init__(self) -> None:
        rows = len(self.log_steps)
        self._common = next((name for name in WELL_KNOWN if self._usable(name) and len(self.columns[name].rows) >= MOSTLY * rows), "")

    def name_for(self, column: Column) -> str:
        """The step metric of a column, or LOG_CALL."""
        defined = self._defined(column.name)
        if defined and self._usable(defined):
            return defined
        if self._common:
            return self._common
        for name in WELL_KNOWN:
            if self._usable(name) and np.isin(column.rows, self.columns[name].rows, assume_unique=False).mean() >= MOSTLY:
                return name
        return LOG_CALL

    def main(self) -> str:
        """The axis most points are drawn over: where what has no step of its own is placed."""
        counts: dict[str, int] = {}
        for column in self.columns.values():
            if not column.name.startswith("_"):
                name = self.name_for(column)
                counts[name] = counts.get(name, 0) + len(column.rows)
        return max(counts, key=lambda name: counts[name], default=LOG_CALL)

    def steps(self, name: str) -> IntArray:
        """The axis ``name`` for every row, shape (rows,).

        A row without the step metric has the last value seen, as W&B fills it in; rows before the first value have that
        value or their log-call step, whichever is smaller.
        """
        return self.log_steps if name == LOG_CALL or self._axis(name) is None else self._known[name]  # type: ignore[return-value]

    def _defined(self, name: str) -> str:
        step = next((m.step_metric for m in reversed(self.metrics) if m.name == name and m.step_metric), "")
        if step or name.startswith("_"):
            return step
        globs = [m for m in self.metrics if m.glob and m.step_metric][:MAX_GLOBS]
        return next((m.step_metric for m in globs if _matches(m.glob, name)), "")

    def _usable(self, name: str) -> bool:
        return self._axis(name) is not None

    def _axis(self, name: str) -> IntArray | None:
        if name not in self._known:
            self._known[name] = self._build(name)
        return self._known[name]

    def _build(self, name: str) -> IntArray | None:
        column = self.columns.get(name)
        if column is None or classify(name)[0] is Role.EPOCH:
            return None  # an epoch is no step: it would put these points on another axis than all others
        values = column.values
        if values.dtype != np.int64:
            if not (np.isfinite(values) & (np.abs(values) < 2.0**53)).all() or (values != np.rint(values)).any():
                return None
            values = values.astype(np.int64)
        if len(values) > 1 and values.min() == values.max():
            return None
        rows = np.arange(len(self.log_steps))
        last = np.searchsorted(column.rows, rows, side="right") - 1
        return np.where(last >= 0, values[np.maximum(last, 0)], np.minimum(self.log_steps, values[0])).astype(np.int64)


def _matches(glob: str, name: str) -> bool:
    if glob.endswith("*") and not set(glob[:-1]) & set("*?["):
        return name.startswith(glob[:-1])
    return fnmatchcase(name, glob)
