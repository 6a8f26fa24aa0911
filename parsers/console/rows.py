"""The records of one kind as columns, and the steps that order them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray, IntArray, NumArray


@dataclass(frozen=True, slots=True)
class Kind:
    """What lines have in common: how many numbers make the step, the names, and whether words follow the last number."""

    axes: int
    names: tuple[str, ...]
    ragged: bool


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """All records of one kind from one process.

    ``offsets`` in the text, ``lines`` and ``steps`` are int64 (rows,), ``times`` seconds (rows,) or None; ``axis`` holds the
    numbers that the steps were made of, ``columns`` one array (rows,) per name.
    """

    kind: Kind
    rank: int | None
    offsets: IntArray
    lines: IntArray
    steps: IntArray
    times: FloatArray | None
    axis: tuple[IntArray, ...]
    columns: tuple[NumArray, ...]

    def column(self, name: str) -> NumArray | None:
        """The numbers of one name."""
        return self.columns[self.kind.names.index(name)] if name in self.kind.names else None


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The steps in the order of the file: offsets, steps and line numbers, all int64 (records,).

    ``note`` says what the steps are where they are not simply those that were printed.
    """

    offsets: IntArray
    steps: IntArray
    lines: IntArray
    note: str = ""

    def at(self, offsets: IntArray) -> IntArray:
        """The steps of records without one, int64 (places,): those of the records before them.

        Before the first record, and where the next record goes back, it is the step before the next one.
        """
        before = np.searchsorted(self.offsets, offsets, side="right") - 1
        known = self.steps[np.maximum(before, 0)]
        own = (before >= 0) & (self.offsets[np.maximum(before, 0)] == offsets)
        following = self.steps[np.minimum(before + 1, len(self.steps) - 1)]
        anew = ~own & ((before < 0) | ((following < known) & (before + 1 < len(self.steps))))
        return np.where(anew, np.maximum(following - self.cadence, 0), known)

    @property
    def cadence(self) -> int:
        """Usual distance of two records in steps."""
        gaps = np.diff(self.steps)
        gaps = gaps[gaps > 0]
        return int(np.median(gaps)) if len(gaps) else 1
