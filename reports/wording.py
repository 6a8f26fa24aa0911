"""How numbers, steps and logged text are written, in every report the same way.

Logged text is hostile input: control characters could move a terminal's cursor and bidi marks could reorder a line, so
``plain`` replaces them before anything else sees the text.
"""

from __future__ import annotations

import math
import re

from forensics.model import EventKind

LONGEST_NAME = 160
"""Characters of a name that are shown. Longer ones keep their head and tail, where names differ."""

LONGEST_TEXT = 6000
"""Characters of a sentence or page that are shown; real manual pages are half as long."""

KINDS: dict[EventKind, str] = {
    EventKind.SPIKE: "spike",
    EventKind.SLOW_SPIKE: "slow spike",
    EventKind.LEVEL_SHIFT: "level shift",
    EventKind.DROP: "sudden drop",
    EventKind.DIVERGENCE: "divergence",
    EventKind.DRIFT: "drift",
    EventKind.NON_FINITE: "non-finite values",
    EventKind.OSCILLATION: "oscillation",
    EventKind.NOISE_CHANGE: "change of noise",
    EventKind.PLATEAU: "plateau",
    EventKind.PERIODIC: "periodic pattern",
    EventKind.OVERFITTING: "overfitting",
    EventKind.RESTART: "restart",
    EventKind.LOSS_SCALE_DROP: "loss scale drop",
    EventKind.LOSS_SCALE_COLLAPSE: "loss scale collapse",
    EventKind.GRAD_NORM_SURGE: "gradient norm surge",
    EventKind.LR_ANOMALY: "learning rate anomaly",
    EventKind.BATCH_SIZE_CHANGE: "batch size change",
    EventKind.LOGIT_GROWTH: "attention logit growth",
    EventKind.THROUGHPUT_CHANGE: "throughput change",
    EventKind.UNFINISHED: "unfinished run",
}

# C0 and C1 controls except tab and newline, surrogates, zero-width and bidi marks, line and paragraph separators.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")
_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s]+")


def plain(text: str, limit: int = LONGEST_TEXT) -> str:
    """Text without characters that act on the reader's screen, cut in the middle beyond ``limit``; line breaks stay."""
    text = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def line(text: str, limit: int = LONGEST_TEXT) -> str:
    """``plain`` on one line."""
    return " ".join(plain(text, limit).split())


def without_home(path: str) -> str:
    """A path with the user's home folder as ``~``: reports are passed on, and the user name is nobody's business."""
    return _HOME.sub("~", path)


def number(value: float | int | str | None) -> str:
    """Four significant digits, thousands separated, scientific where plain digits would mislead."""
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else f"{float(value):.4g}"
    return _decimal(value)


def _decimal(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    size = abs(value)
    if 9999.5 <= size < 1e9 or (value.is_integer() and size < 1e9):
        return f"{value:,.0f}"
    return f"{value:.4g}" if 1e-3 <= size < 1e9 else f"{value:.3g}"


def signed(value: float) -> str:
    """A difference with its sign."""
    text = number(value)
    return text if text[0] in "+-" or math.isnan(value) else f"+{text}"


def step(value: int | None) -> str:
    """A step with thousands separated."""
    return "unknown" if value is None else f"{value:,}"


def count(amount: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    if amount == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{amount:,} {plural}"


def lag(steps: int | None) -> str:
    """Lead or lag against the event's own signal."""
    if steps is None:
        return "order unknown"
    if steps == 0:
        return "at the same step"
    return f"{count(abs(steps), 'step')} {'before' if steps < 0 else 'after'}"


def kind(value: EventKind) -> str:
    """An event kind in words."""
    return KINDS[value]


def tick(value: float) -> str:
    """A short axis label."""
    size = abs(value)
    if size != 0 and (size >= 1e6 or size < 1e-4):
        mantissa, power = f"{value:.3e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:,.6g}" if size < 1e4 else f"{value:,.0f}"
