"""Any log whose lines say ``step 10 | loss: 2.31, lr=1e-4``: a step-like name, other names, and the same names again and again.

A fallback for loops of one's own, claimed with little confidence and only in files named as texts.
"""

from __future__ import annotations

import re

import numpy as np

from forensics.parsers.console import lines, logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Group, Line, Reader
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink
from forensics.vocabulary import Role, classify, normalise, step_column

NAME = "console.generic"

TRAINING, NUMBERS = 40, 25
"""Confidence where a known metric of training is among the names, and where there are only numbers."""
LEAST_CLAIMED = 5
"""Lines with the same names and steps that grow, to claim a file."""
LEAST_KEPT = 3
"""Lines with the same names to keep them; fewer count only where all names are known metrics."""
LINE_REACH = 4_000
"""Bytes of a line that are looked at: a record is short, and free text is long."""

_UNIT = rb"(?:ms|us|s|sec|secs|it/s|s/it|k|K|M|G|GB|GiB|MB|MiB|%|x)?"
_PAIR = re.compile(
    rb"[\"']?(?<![\w.@/%-])(?P<name>[A-Za-z_][\w.@/%-]*(?: [A-Za-z_][\w.@/%-]*){0,3}(?: ?\([\w/% ]{1,12}\))?)[\"']?\s{0,9}[:=]\s{0,9}[\"'\[(]?\s{0,9}(?P<value>"
    + NUMBER + rb")" + _UNIT + rb"(?=[\s,;|)\]}/(\"']|[:.](?:\s|$)|$)"
    rb"|(?<![\w.@/%-])(?P<word>[A-Za-z_][\w.@/%-]*)\s{0,9}[\s\[(#]\s{0,9}(?P<number>" + NUMBER + rb")" + _UNIT + rb"(?=[\s,;|)\]}/(]|[:.](?:\s|$)|$)"
)
_AVERAGE = re.compile(rb"\s*\((" + NUMBER + rb")\)")
_AXES = frozenset({None, Role.STEP, Role.EPOCH, Role.WALL_TIME})
_TRAINING = frozenset({Role.LOSS, Role.LOSS_BY_SOURCE, Role.VAL_LOSS, Role.LR, Role.GRAD_NORM, Role.LOSS_SCALE})


def _read(text: bytes) -> Line | None:
    fields: list[Field] = []
    seen: set[str] = set()
    for found in _PAIR.finditer(text[:LINE_REACH]):
        part = "value" if found["name"] else "number"
        name = (found["name"] or found["word"]).decode("utf-8", errors="replace")
        if name in seen:
            continue
        seen.add(name)
        fields.append(Field(name, *found.span(part)))
        average = _AVERAGE.match(text, found.end())
        if average is not None:
            fields.append(Field(f"{name} (avg)", *average.span(1)))
    axis = _axis(text, fields)
    rest = tuple(f for f in fields if f is not axis)
    return Line(((axis.start, axis.stop),), rest) if axis is not None and rest else None


def _axis(text: bytes, fields: list[Field]) -> Field | None:
    """The step: a whole number whose name is, or ends with, the name of a step axis."""
    whole = {f.name: f for f in fields if text[f.start : f.stop].isdigit()}
    names = dict.fromkeys(whole, "")
    for name in names:
        words = normalise(name).split("_")
        names[name] = next((c for k in range(min(2, len(words)), 0, -1) if step_column([c := "_".join(words[-k:])])), "")
    best = step_column(c for c in names.values() if c)
    return next((whole[name] for name, column in names.items() if column == best), None) if best else None


FORMAT = Format(
    title="a training loop of one's own",
    marks=(b"tep", b"STEP", b"ter", b"ITER", b"poch", b"EPOCH", b"it", b"update", b"batch"),
    gate=re.compile(
        rb"(?:global_step|global step|Global step|step|Step|STEP|steps|iter|Iter|ITER|iteration|Iteration|it|update|num_updates|n_iter|batch_num"
        rb"|epoch|Epoch|EPOCH)[\"']?[ \t]{0,9}[:=#\[(]?[ \t]{0,9}[\[(\"']?[ \t]{0,9}\d[^\n]*"
    ),
    read=_read,
    whole_line=True,
)


def sniff(source: Source) -> Claim | None:
    """Claim a text log in whose head the same names come back with steps that grow."""
    if source.is_dir or not source.head or not lines.is_named_log(source.path) or not lines.may_be_log(source.path):
        return None
    sure = _confidence(lines.head(source)) or _confidence(lines.far_head(source))
    return Claim(NAME, sure) if sure else None


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the lines whose names come back."""
    logs.read((FORMAT,), source, sink, keep=_is_kept)


def _confidence(text: bytes) -> int:
    reader = Reader(FORMAT)
    reader.take(lines.block(text))
    best = 0
    for group in reader.groups.values():
        steps = np.concatenate([block[0] for block in group.values]) if len(group) else np.zeros(0)
        if len(steps) < LEAST_CLAIMED or len(np.unique(steps)) < LEAST_CLAIMED or 2 * (np.diff(steps) > 0).sum() < len(steps) - 1:
            continue
        roles = {classify(name)[0] for name in group.kind.names}
        best = max(best, TRAINING if roles & _TRAINING else NUMBERS)
    return best


def _is_kept(group: Group) -> bool:
    return len(group) >= LEAST_KEPT or all(classify(name)[0] is not None for name in group.kind.names)
