"""The loops of PyTorch's examples and tutorials, which many projects began as: imagenet, mnist, word_language_model, cifar10.

    Epoch: [0][  10/5005]  Time  0.131 ( 0.312)  Loss 6.9481e+00 (7.0023e+00)  Acc@1   0.00 (  0.10)
    Train Epoch: 1 [6400/60000 (11%)]  Loss: 1.502300
    | epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 40.91 | loss  7.63 | ppl  2068.73
    [1,  2000] loss: 2.173

A number in parentheses is the average since the epoch began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.model import IntArray
from forensics.parsers.console import logs
from forensics.parsers.console.lines import NUMBER
from forensics.parsers.console.shapes import Field, Format, Line, Span
from forensics.parsers.interface import Claim, RunKey, Source
from forensics.parsers.sink import Sink

NAME = "console.pytorch_examples"

_METER = re.compile(rb"(?<![\w@/.-])([A-Za-z][\w@/.-]*) {1,20}(" + NUMBER + rb")s? {0,20}\( {0,20}(" + NUMBER + rb")s?\)")
_SUMMARY = re.compile(rb"(Acc@\d+|Prec@\d+|Loss) +(" + NUMBER + rb")(?=\s|$)")
_PAIR = re.compile(rb"([A-Za-z][\w /]{0,40}?): {0,20}(" + NUMBER + rb")(?=[\s,]|$)")
_BAR = re.compile(rb"\| {0,20}([A-Za-z][\w/ ]{0,40}?)(?: {0,9}:)? {1,20}(" + NUMBER + rb")s? {0,20}(?=\||$)")
_RATIO = re.compile(rb"Accuracy: *\d+/\d+ \((" + NUMBER + rb")%\)")
_IMAGENET = re.compile(rb"Epoch: ?\[(\d+)\] ?\[ *(\d+)/ *(\d+)\]")
_MNIST = re.compile(rb"Train Epoch: (\d+) \[(\d+)/(\d+) \(")
_WORDS = re.compile(rb"\| epoch +(\d+) +\| +(\d+)/ *(\d+) batches ")
_CIFAR = re.compile(rb"\[(\d+), +(\d+)\] (?=loss: )")


def _imagenet(text: bytes) -> Line | None:
    head = _IMAGENET.match(text)
    if head is None:
        fields = [Field(f"val {m[1].decode()}", *m.span(2)) for m in _SUMMARY.finditer(text)]
        return Line((), tuple(fields)) if fields else None
    fields = []
    for found in _METER.finditer(text, head.end()):
        fields += [Field(found[1].decode(), *found.span(2)), Field(f"{found[1].decode()} (avg)", *found.span(3))]
    return Line(_spans(head), tuple(fields)) if fields else None


def _mnist(text: bytes) -> Line | None:
    head = _MNIST.match(text)
    if head is None:
        fields = [Field(f"test {m[1].decode().strip().lower()}", *m.span(2)) for m in _PAIR.finditer(text, text.index(b":") + 1)]
        ratio = _RATIO.search(text)
        fields += [Field("test accuracy (%)", *ratio.span(1))] if ratio is not None else []
        return Line((), tuple(fields)) if fields else None
    at = text.find(b")]", head.end())
    fields = [Field(m[1].decode(), *m.span(2)) for m in _PAIR.finditer(text, at + 2)] if at > 0 else []
    return Line(_spans(head), tuple(fields)) if fields else None


def _words(text: bytes) -> Line | None:
    head = _WORDS.match(text)
    start = head.end() if head is not None else 0
    fields = [Field(m[1].decode(), *m.span(2)) for m in _BAR.finditer(text, start) if not m[1].lower().startswith((b"end of epoch", b"time"))]
    if not fields:
        return None
    return Line(_spans(head) if head is not None else (), tuple(fields))


def _cifar(text: bytes) -> Line | None:
    head = _CIFAR.match(text)
    if head is None:
        return None
    fields = [Field(m[1].decode(), *m.span(2)) for m in _PAIR.finditer(text, head.end())]
    return Line((head.span(2),), (Field("epoch", *head.span(1)), *fields)) if fields else None


def _spans(head: re.Match[bytes]) -> tuple[Span, ...]:
    return head.span(1), head.span(2), head.span(3)


def _from_zero(axis: Sequence[IntArray]) -> IntArray:
    return axis[0] * axis[2] + axis[1]


def _from_one(axis: Sequence[IntArray]) -> IntArray:
    return (axis[0] - 1) * axis[2] + axis[1]


FORMATS = (
    Format(
        title="PyTorch's imagenet example",
        marks=(b"Epoch: [", b"Epoch:["),
        gate=re.compile(rb"Epoch: ?\[\d+\] ?\[ *\d+/ *\d+\][^\n]*|\* +(?:Acc|Prec)@1 [^\n]*"),
        read=_imagenet,
        step=_from_zero,
        headed=True,
    ),
    Format(
        title="PyTorch's mnist example",
        marks=(b"Train Epoch: ",),
        gate=re.compile(rb"Train Epoch: \d+ \[\d+/\d+ \([^\n]*|Test set: Average loss:[^\n]*"),
        read=_mnist,
        step=_from_one,
        headed=True,
        axis_note="samples over all epochs",
    ),
    Format(
        title="PyTorch's word_language_model example",
        marks=(b" batches | ",),
        gate=re.compile(rb"\| epoch +\d+ +\| +\d+/ *\d+ batches \|[^\n]*|\| [Ee]nd of (?:epoch +\d+|training) \|[^\n]*"),
        read=_words,
        step=_from_one,
        headed=True,
    ),
    Format(
        title="PyTorch's cifar10 tutorial",
        marks=(b"] loss: ",),
        gate=re.compile(rb"\[\d+, +\d+\] loss: [^\n]*"),
        read=_cifar,
    ),
)


def sniff(source: Source) -> Claim | None:
    """Claim a text with the lines of one of the examples."""
    claims = [claim for form in FORMATS if (claim := logs.claim(NAME, form, source)) is not None]
    return max(claims, key=lambda claim: claim.confidence, default=None)


def parse(source: Source, sink: Sink, run: RunKey) -> None:  # noqa: ARG001 - a log holds one run, or attempts at one
    """Read the lines of the example that is there."""
    form = next((f for f in FORMATS if logs.holds(source, f.gate)), FORMATS[0])
    logs.read((form,), source, sink)
