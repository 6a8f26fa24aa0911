"""What Hugging Face's Trainer prints: ``{'loss': 2.3, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.1}``.

No step is printed. It is taken from the progress bar around the line, else from the step or epoch that the entry names,
else the entries are counted; the note ``step_axis`` says which.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forensics.model import FloatArray, IntArray
from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.rows import Axis, Rows
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.hf_trainer import SUMMARY_MARK
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.hf_print"

_ENTRY = re.compile(rb"'([^'\n]{1,200})': '?(" + NUMBER + rb")(?=[,}'])")
_BAR = re.compile(rb"(\d+)/(\d+) \[")
_HELD_OUT = re.compile(r"(eval|test|predict)_")
COUNTED = "log entries counted: the Trainer prints no step"
STEPS = frozenset({"step", "global_step"})
MARK = re.compile(rb"\{'(?:loss|eval_loss|train_runtime)': '?")


def _read(text: bytes) -> Line | None:
    if not text.startswith(b"{"):
        bar = _BAR.match(text)
        return None if bar is None else Line((bar.span(1), bar.span(2)), ())
    fields = [Field(m[1].decode("utf-8", errors="replace"), *m.span(2)) for m in _ENTRY.finditer(text)]
    if SUMMARY_MARK in {f.name for f in fields}:
        fields = [Field(f"@{f.name}", f.start, f.stop) for f in fields if f.name == SUMMARY_MARK]
    step = next((f for f in fields if f.name in STEPS), None)
    rest = tuple(f for f in fields if f is not step)
    return Line(((step.start, step.stop),), rest) if step is not None else Line((), rest) if rest else None


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """The printed entries in the order of the file, all (entries,). ``epochs`` is NaN where an entry names none."""

    offsets: IntArray
    lines: IntArray
    epochs: FloatArray
    training: IntArray
    """Places of the entries of training itself; the others belong to the one before them."""


def _order(tables: Sequence[Rows]) -> Axis:
    entries = _entries([t for t in tables if t.kind.names and t.kind.axes != 2])
    named = [t for t in tables if t.kind.axes == 1]
    bars = [t for t in tables if t.kind.axes == 2]
    offsets = entries.offsets[entries.training]
    if named and sum(len(t.offsets) for t in named) >= len(offsets):
        at = np.concatenate([t.offsets for t in named])
        order = np.argsort(at, kind="stable")
        return Axis(at[order], np.concatenate([t.steps for t in named])[order], np.concatenate([t.lines for t in named])[order])
    if not len(offsets):  # evaluations only
        return Axis(entries.offsets, np.arange(1, len(entries.offsets) + 1, dtype=np.int64), entries.lines, COUNTED)
    steps = _from_bars(offsets, bars) if bars else None
    lines = entries.lines[entries.training]
    if steps is not None:
        return Axis(offsets, steps, lines, "step of the progress bar")
    return Axis(offsets, _counted(entries.epochs[entries.training]), lines, COUNTED)


def _entries(tables: Sequence[Rows]) -> _Entries:
    if not tables:
        none = np.zeros(0, dtype=np.int64)
        return _Entries(none, none, np.zeros(0), none)
    offsets = np.concatenate([t.offsets for t in tables])
    order = np.argsort(offsets, kind="stable")
    epochs = [np.full(len(t.offsets), np.nan) if (e := t.column("epoch")) is None else e.astype(np.float64) for t in tables]
    trains = [np.full(len(t.offsets), not all(_HELD_OUT.match(n) or n == "epoch" for n in t.kind.names)) for t in tables]
    training = np.flatnonzero(np.concatenate(trains)[order])
    return _Entries(offsets[order], np.concatenate([t.lines for t in tables])[order], np.concatenate(epochs)[order], training)


def _from_bars(offsets: IntArray, bars: Sequence[Rows]) -> IntArray | None:
    """The steps that the training bar shows: drawn again after an entry it is exact, before it it may lag behind."""
    at = np.concatenate([b.offsets for b in bars])
    order = np.argsort(at, kind="stable")
    at, done, total = at[order], *(np.concatenate([b.axis[i] for b in bars])[order] for i in (0, 1))
    before = np.searchsorted(at, offsets) - 1
    totals = Counter(total[before[before >= 0]].tolist())  # an evaluation draws a bar of its own, of another length
    if not totals:
        return None
    of_training = total == totals.most_common(1)[0][0]
    at, done = at[of_training], done[of_training]
    after = np.searchsorted(at, offsets)
    ends = np.append(offsets[1:], np.iinfo(np.int64).max)
    exact = (after < len(at)) & (at[np.minimum(after, len(at) - 1)] < ends)
    steps = np.where(exact, done[np.minimum(after, len(at) - 1)], done[np.maximum(after - 1, 0)])
    return steps if len(np.unique(steps)) > len(steps) // 2 else None


def _counted(epochs: FloatArray) -> IntArray:
    """The entries counted from 1; after a restart, which the epoch shows, from where that epoch was before."""
    steps = np.arange(1, len(epochs) + 1, dtype=np.int64)
    back = np.flatnonzero(np.diff(epochs) < 0) + 1
    for start in back.tolist():
        earlier = epochs[:start]
        steps[start:] += int(steps[int(np.argmin(np.abs(earlier - epochs[start])))]) - int(steps[start])
    return steps


FORMAT = Format(
    title="Hugging Face Trainer (printed)",
    marks=(b"{'",),
    gate=re.compile(rb"\{(?='(?:[^{}\n]*')?(?:loss|eval_loss|learning_rate|train_runtime)': )[^\n]*|\d{1,12}/\d{1,12} \[(?=\d{1,6}:\d\d)[^\n{]*"),
    read=_read,
    fixed=True,
    order=_order,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with the printed entries."""
    return logs.claim(NAME, FORMAT, source) if logs.holds(source, MARK) else None


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the entries."""
    logs.read((FORMAT,), source, sink)
