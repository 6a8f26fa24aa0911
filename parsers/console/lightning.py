"""Lightning's progress bars, tqdm's and rich's, and those of NeMo 1.

``Epoch 0:   6%|#  | 86/1563 [00:06<01:44, 14.19it/s, v_num=0, train_loss=1.800]``. The bar is drawn over itself, shows three
digits, and goes on showing a validation loss until there is a new one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.model import IntArray
from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.lightning"

_TQDM = re.compile(rb"Epoch (?P<epoch>\d+):[^|\n]{0,20}\|[^|\n]*\| *(?P<batch>\d+)/(?P<all>\d+|\?) \[[^\],\n]*")
_RICH = re.compile(
    rb"Epoch (?P<epoch>\d+)/[\d-]{1,9} {1,9}\S{0,200} {0,9}(?P<batch>\d{1,12})/(?P<all>\d{1,12})"
    rb" {1,9}[\d:]{1,20} \S{1,9} [\d:-]{1,20} {1,9}[\d.]{1,20}it/s"
)
_SETS = re.compile(rb"[, ] ?([A-Za-z_][^=,\]\n]{0,100}?)=(" + NUMBER + rb")(?=[,\]]|$)")
_COLONS = re.compile(rb" ([A-Za-z_][\w./@-]*): (" + NUMBER + rb")(?=\s|$)")
_UNWANTED = frozenset({"v_num"})


def _read(text: bytes) -> Line | None:
    head = _TQDM.match(text)
    pairs = _SETS
    if head is None:
        head, pairs = _RICH.match(text), _COLONS
    if head is None:
        return None
    fields = [Field(m[1].decode("utf-8", errors="replace").strip(), *m.span(2)) for m in pairs.finditer(text, head.end())]
    fields = [Field("", f.start, f.stop) if f.name in _UNWANTED else f for f in fields]
    step = next((f for f in fields if f.name == "global_step"), None)
    if step is not None:
        return Line(((step.start, step.stop),), tuple(f for f in fields if f is not step))
    if not any(f.name for f in fields):
        return None
    names = ("epoch", "batch", "all") if head["all"] != b"?" else ("batch",)
    return Line(tuple(head.span(name) for name in names), tuple(fields))


def _step(axis: Sequence[IntArray]) -> IntArray:
    return axis[0] if len(axis) == 1 else axis[0] * axis[2] + axis[1]


FORMAT = Format(
    title="Lightning",
    marks=(b"Epoch ",),
    gate=re.compile(rb"Epoch \d+(?::[^|\n]{0,20}\||/[\d-]+ )[^\n]*"),
    read=_read,
    step=_step,
    shown=re.compile(r"(^|[_/])(val|valid|validation|test|eval)|_epoch$"),
    axis_note="batches over all epochs, as the progress bar counts them",
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with progress bars that show metrics."""
    return logs.claim(NAME, FORMAT, source)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the bars, one record for each time it was drawn."""
    logs.read((FORMAT,), source, sink)
